/**
 * The runs of other processes that are read here: one subscription each, for any number of readers, and the latest entries. A lagging reader, and
 * every reader after a gap, reads the stream.
 */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { RunStatus } from '../../part/log.ts'
import type { Notifier } from '../notifier.ts'
import { isSameEntry } from '../check-append.ts'
import { decodeEntries } from '../encode.ts'
import { createLiveTail, type LiveTail } from '../live-tail-cache.ts'
import { entriesLost } from '../store-error.ts'
import type { Channels } from './channels.ts'
import type { Keys } from './keys.ts'
import type { RunHead, Pages } from './pages.ts'

export interface Tail {
  /** The known head of the stored run; undefined: no such run. */
  head: RunHead | undefined
  recent: LiveTail
  /** Whether messages are received, so that polling is not needed. */
  isLive: boolean
  /** Whether Redis may have lost entries that were read here. */
  isSuspect: boolean
  /** Resolves when messages are received and the head is known. */
  ready: Promise<void>
  /** Its last entry, if it was seen here. */
  last: Entry | undefined
  /** Why the run cannot be read further. */
  error?: Error
}

interface KeptTail extends Tail {
  readers: number
  /** The time of the last message or poll; ms. */
  heard: number
}

export interface LiveTails {
  join(run: string): Tail
  leave(run: string, tail: Tail): void
  /** Polls the stored state of a run: for readers without messages, and after messages may have been lost. */
  look(run: string): Promise<void>
  /** After a reconnect: Redis may have lost entries that were read here. Readers wait until they are back. */
  verifyAll(): void
  /** Resolves when a run has this entry. Rejects after a timeout: Redis has lost it, and no process rewrites it. */
  reach(run: string, seq: number): Promise<void>
  end(): void
}

/** Polling interval of a tail without messages, in ms. */
const silence = 2000
/** Timeout for the owner to rewrite lost entries, in ms, and the polling interval. */
const patience = 2000
const lookEvery = 100

export function createTails({
  channels,
  keys,
  pages,
  bell,
}: {
  channels: Channels
  keys: Keys
  pages: Pages
  bell: Notifier
}): LiveTails {
  const tails = new Map<string, KeptTail>()
  const timer = setInterval(lookAtSilent, silence / 2)
  timer.unref()

  function seqOf({ head }: Tail): number {
    return head?.seq ?? 0
  }

  function hear(run: string, tail: KeptTail, message: string): void {
    tail.heard = Date.now()
    const end = message.indexOf('\n')
    const [epoch, before, last, status] = message.slice(0, end).split(' ') as [string, string, string, RunStatus]
    const seq = Number(last)
    const lines = message.slice(end + 1)
    // A fork was created.
    if (lines === '') return void look(run).catch(() => undefined)
    // Lost entries are written again; or a new owner, which did not see them, writes others.
    const isOther = Number(before) < seqOf(tail) && (Number(epoch) > (tail.head?.epoch ?? 0) || seq > seqOf(tail))
    if (isOther && tail.isLive) return fail(run, tail, entriesLost(run))
    // A reader of the stream finds the entries there.
    if (tail.isSuspect || seq <= seqOf(tail)) return
    if (Number(before) !== seqOf(tail)) tail.recent = createLiveTail()
    const entries = decodeEntries([lines])
    tail.recent.push(entries, lines.length)
    tail.last = entries.at(-1)
    tail.head = { epoch: Number(epoch), seq, status }
    bell.notify(run)
  }

  function fail(run: string, tail: KeptTail, error: Error): void {
    tail.error = error
    bell.notify(run)
  }

  async function reach(run: string, seq: number): Promise<void> {
    let end: number | undefined
    for (; ; await new Promise((resolve) => setTimeout(resolve, lookEvery))) {
      const head = await pages.head(run)
      // Counted from the first reply: the owner cannot write earlier either.
      end ??= Date.now() + patience
      if ((head?.seq ?? 0) >= seq) return
      if (Date.now() >= end) throw entriesLost(run)
    }
  }

  async function verify(run: string, tail: KeptTail): Promise<void> {
    if (tail.isSuspect || !tail.isLive || tail.head === undefined) return
    tail.isSuspect = true
    try {
      await reach(run, tail.head.seq)
      const { last } = tail
      const [stored] = last === undefined ? [] : await pages.entries(run, last.seq - 1, 1)
      // Compaction merges deltas of an ended run.
      const isOther = stored !== undefined && stored.firstSeq === undefined && !isSameEntry(stored, last!)
      if (isOther) throw entriesLost(run)
      tail.isSuspect = false
      await look(run)
    } catch (error) {
      // If the check fails, the reader repeats it.
      tail.isSuspect = false
      if (error instanceof MillraceError && error.code === 'store-lost') fail(run, tail, error)
    }
    bell.notify(run)
  }

  async function look(run: string): Promise<void> {
    const tail = tails.get(run)
    if (tail === undefined) return
    tail.heard = Date.now()
    const head = await pages.head(run)
    if (head === undefined || head.seq < seqOf(tail)) return
    if (head.seq === seqOf(tail) && head.epoch === tail.head?.epoch && head.status === tail.head.status) return
    if (head.seq > seqOf(tail)) {
      tail.recent = createLiveTail()
      tail.last = undefined
    }
    tail.head = head
    bell.notify(run)
  }

  function lookAtSilent(): void {
    const now = Date.now()
    for (const [run, { heard, isLive, isSuspect }] of tails) {
      if (isLive && !isSuspect && now - heard > silence) look(run).catch(() => undefined)
    }
  }

  /** The channel may belong to a newer tail by now. */
  function drop(run: string, tail: Tail): void {
    if (tails.get(run) !== tail) return
    tails.delete(run)
    void channels.close(keys.live(run))
  }

  async function open(run: string, tail: KeptTail): Promise<void> {
    try {
      await channels.open(keys.live(run), (message) => hear(run, tail, message))
      await look(run)
      tail.isLive = true
    } catch (error) {
      drop(run, tail)
      throw error
    }
  }

  return {
    join(run) {
      let tail = tails.get(run)
      if (tail === undefined) {
        const none = Promise.resolve()
        const state = { readers: 0, isSuspect: false, heard: Date.now() }
        tail = { head: undefined, recent: createLiveTail(), isLive: false, ready: none, last: undefined, ...state }
        tails.set(run, tail)
        tail.ready = open(run, tail)
        tail.ready.catch(() => undefined)
      }
      tail.readers++
      return tail
    },
    leave(run, tail) {
      if (--(tail as KeptTail).readers === 0) drop(run, tail)
    },
    look,
    verifyAll() {
      for (const [run, tail] of tails) void verify(run, tail)
    },
    reach,
    end: () => clearInterval(timer),
  }
}

/**
 * The runs of other processes that are read here: one subscription for each, whatever the number of readers, and its latest entries.
 * A reader that is behind, and everybody after a gap, reads the stream.
 */
import type { RunStatus } from '../../part/log.ts'
import type { Bell } from '../bell.ts'
import { decodeEntries } from '../encode.ts'
import { createRecent, type Recent } from '../recent.ts'
import type { Channels } from './channels.ts'
import type { Keys } from './keys.ts'
import type { Head, Pages } from './pages.ts'

export interface Tail {
  /** What is stored of the run, as far as is known; undefined: no such run. */
  head: Head | undefined
  recent: Recent
  /** Whether messages come, so that there is nothing to ask for. */
  isLive: boolean
  /** Resolves when messages come and the head is known. */
  ready: Promise<void>
  /** Why nobody can read on. */
  error?: Error
}

interface Kept extends Tail {
  readers: number
  /** When something came last, or was looked for; ms. */
  heard: number
}

export interface Tails {
  join(run: string): Tail
  leave(run: string): void
  /** Looks what is stored of a run: for readers that hear nothing, and after messages may have been lost. */
  look(run: string): Promise<void>
  lookAtAll(): void
  end(): void
}

/** A tail that heard nothing for so long is looked at, in ms. */
const silence = 2000

export function createTails({
  channels,
  keys,
  pages,
  bell,
}: {
  channels: Channels
  keys: Keys
  pages: Pages
  bell: Bell
}): Tails {
  const tails = new Map<string, Kept>()
  const timer = setInterval(lookAtSilent, silence / 2)
  timer.unref()

  function seqOf({ head }: Tail): number {
    return head?.seq ?? 0
  }

  function hear(run: string, tail: Kept, message: string): void {
    tail.heard = Date.now()
    const end = message.indexOf('\n')
    const [epoch, before, last, status] = message.slice(0, end).split(' ') as [string, string, string, RunStatus]
    const seq = Number(last)
    // Written again, after a loss.
    if (seq <= seqOf(tail)) return
    if (Number(before) !== seqOf(tail)) tail.recent = createRecent()
    const lines = message.slice(end + 1)
    tail.recent.push(decodeEntries([lines]), lines.length)
    tail.head = { epoch: Number(epoch), seq, status }
    bell.ring(run)
  }

  async function look(run: string): Promise<void> {
    const tail = tails.get(run)
    if (tail === undefined) return
    tail.heard = Date.now()
    const head = await pages.head(run)
    if (head === undefined || (head.seq <= seqOf(tail) && head.status === tail.head?.status)) return
    if (head.seq > seqOf(tail)) tail.recent = createRecent()
    tail.head = { ...head, seq: Math.max(head.seq, seqOf(tail)) }
    bell.ring(run)
  }

  function lookAtSilent(): void {
    const now = Date.now()
    for (const [run, { heard, isLive }] of tails) if (isLive && now - heard > silence) look(run).catch(() => undefined)
  }

  async function open(run: string, tail: Kept): Promise<void> {
    try {
      await channels.open(keys.live(run), (message) => hear(run, tail, message))
      await look(run)
      tail.isLive = true
    } catch (error) {
      if (tails.get(run) === tail) tails.delete(run)
      void channels.close(keys.live(run))
      throw error
    }
  }

  return {
    join(run) {
      let tail = tails.get(run)
      if (tail === undefined) {
        const none = Promise.resolve()
        tail = { head: undefined, recent: createRecent(), isLive: false, ready: none, readers: 0, heard: Date.now() }
        tails.set(run, tail)
        tail.ready = open(run, tail)
        tail.ready.catch(() => undefined)
      }
      tail.readers++
      return tail
    },
    leave(run) {
      const tail = tails.get(run)
      if (tail === undefined || --tail.readers > 0) return
      tails.delete(run)
      void channels.close(keys.live(run))
    },
    look,
    lookAtAll() {
      for (const run of tails.keys()) look(run).catch(() => undefined)
    },
    end: () => clearInterval(timer),
  }
}

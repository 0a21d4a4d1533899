/** A run on the terminal: its answer on stdout as it comes, what it does on stderr, its questions to whoever is there. */
import type { MillraceClient } from '../client/client.ts'
import type { Entry, EntryOf } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { Wire } from '../wire/wire.ts'
import type { Ask } from './ask.ts'
import { onConsoleLine } from './console-lines.ts'
import { forStream } from './printable.ts'
import { createProgress } from './progress.ts'
import { createToolLines } from './tool-lines.ts'
import { writeOut } from './write-out.ts'

export interface FollowOptions {
  wire: Wire
  ask: Ask
  /** What has been shown before: entries up to this `seq`. */
  after?: number
  /** Requests that are open by then are asked at once, not only when the run waits for them again. */
  asksOpen?: boolean
  /** Calls of tools and their results are shown on stderr. */
  showsTools?: boolean
}

/** How far a run has come. */
export interface Followed {
  /** Absent when it waits. */
  end?: EntryOf<'run-end'>
  /** Requests that nobody here can answer. */
  waiting: EntryOf<'request'>[]
  /** Client tools that ran nowhere: without a log a run cannot wait for them. */
  handedOver: string[]
  /** The last line that was printed has no end yet. */
  isLineOpen: boolean
}

interface OpenRequest {
  request: EntryOf<'request'>
  closed: AbortController
  isAsked: boolean
}

/** How often in a row it is tried in vain to reach a server that is gone: about four seconds. */
const retries = 4

/** Prints the run to its end, or until it waits for what nobody here can answer. */
export async function followRun(client: MillraceClient, id: string, options: FollowOptions): Promise<Followed> {
  const { wire, ask, after = 0, asksOpen = false, showsTools = false } = options
  const { stdout, stderr } = process
  // The run is followed through its suspends.
  const encoder = wire.createEncoder({ resumedAt: Infinity })
  const followed: Followed = { waiting: [], handedOver: [], isLineOpen: false }
  let isAsking = false
  const progress = createProgress(stderr, () => !(followed.isLineOpen && stdout.isTTY) && !isAsking)
  const tools = showsTools ? createToolLines() : undefined
  const open = new Map<string, OpenRequest>()
  let asked: Promise<void> = Promise.resolve()

  /** What is about to be written to stderr begins a line, also where stdout and stderr are one terminal. */
  function endLine(): void {
    progress.clear()
    if (!followed.isLineOpen || !stdout.isTTY) return
    stdout.write('\n')
    followed.isLineOpen = false
  }

  const off = onConsoleLine(() => void (stderr.isTTY && endLine()))

  async function question(request: EntryOf<'request'>, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    endLine()
    isAsking = true
    const answer = await ask.answer(request, signal).catch(() => undefined)
    isAsking = false
    if (signal.aborted) return
    if (answer === undefined) {
      // Whoever was at the terminal has closed it.
      await client.stop(id, 'No answer was given on the terminal.').catch(() => undefined)
      return
    }
    await client.answer(id, request.requestId, answer).catch((error: unknown) => {
      // Somebody else answered first, or the run has ended: its log tells.
      if (!(error instanceof MillraceError) || error.code === 'connection-lost') throw error
    })
  }

  function put(each: OpenRequest): void {
    if (each.isAsked || !ask.canAnswer(each.request)) return
    each.isAsked = true
    asked = asked.then(() => question(each.request, each.closed.signal))
    asked.catch(() => undefined)
  }

  /** Whether it waits for what nobody here can answer. */
  function note(entry: Entry): boolean {
    if (entry.type === 'request') {
      const each = { request: entry, closed: new AbortController(), isAsked: false }
      open.set(entry.requestId, each)
      // One that was asked before is asked again only when the run waits for it: it may have been answered since.
      if (entry.seq > after) put(each)
    } else if (entry.type === 'response') {
      open.get(entry.requestId)?.closed.abort()
      open.delete(entry.requestId)
    } else if (entry.type === 'tool-result' && entry.outcome === 'handed-over') followed.handedOver.push(entry.toolName)
    else if (entry.type === 'run-end') followed.end = entry
    else if (entry.type === 'suspend' && entry.seq > after) {
      for (const each of open.values()) put(each)
      followed.waiting = [...open.values()].map(({ request }) => request)
      return !followed.waiting.some(ask.canAnswer)
    }
    return false
  }

  try {
    for await (const entry of client.follow(id, 0, { retries })) {
      const isNew = entry.seq > after
      progress.apply(entry)
      const waits = note(entry)
      if (asksOpen && entry.seq === after) for (const each of open.values()) put(each)
      const line = isNew ? tools?.apply(entry) : undefined
      if (line !== undefined) {
        endLine()
        stderr.write(`${line}\n`)
      }
      if (waits) break
      if (!isNew) {
        encoder.skip(entry)
        continue
      }
      const out = encoder.encode(entry)
      if (out === '') continue
      progress.clear()
      followed.isLineOpen = !out.endsWith('\n')
      await writeOut(forStream(out, stdout))
    }
  } finally {
    progress.clear()
    off()
  }
  if (followed.end !== undefined) followed.waiting = []
  await asked
  return followed
}

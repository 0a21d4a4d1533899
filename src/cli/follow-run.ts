/** Follows a run: streams its answer to stdout, shows progress on stderr, and asks its requests on the terminal. */
import type { CommandContext } from './context.ts'
import type { ClientAnswer, MillraceClient } from '../client/client.ts'
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
  /** Entries up to this `seq` have been shown before. */
  after?: number
  /** Ask requests that are open at `after` at once, not only when the run is suspended again. */
  asksOpen?: boolean
  /** Show tool calls and their results on stderr. */
  showsTools?: boolean
  /** Gives an answer. Default: to the server, as it is. */
  give?: (id: string, requestId: string, answer: ClientAnswer) => Promise<unknown>
}

/** The state of the run when following stopped. */
export interface Followed {
  /** Absent if the run is suspended. */
  end?: EntryOf<'run-end'>
  /** Open requests that cannot be answered here. */
  waiting: EntryOf<'request'>[]
  /** Client tools that were called but not run: a run without a log cannot wait for them. */
  handedOver: string[]
  /** The printed answer does not end with a newline yet. */
  isLineOpen: boolean
}

interface OpenRequest {
  request: EntryOf<'request'>
  closed: AbortController
  isAsked: boolean
}

const refusals: ReadonlySet<string> = new Set(['connection-lost', 'foreign-run', 'usage', 'forbidden'])

/** Attempts to reach a server that does not answer, in a row: about four seconds. */
const retries = 4

/** Prints the run until it ends, or until it waits for something that cannot be answered here. */
export async function followRun(
  context: CommandContext,
  client: MillraceClient,
  id: string,
  options: FollowOptions,
): Promise<Followed> {
  const { wire, ask, after = 0, asksOpen = false, showsTools = false } = options
  const { give = (...answer) => client.answer(...answer) } = options
  /** An answer was refused, so that the run would wait for ever. */
  const refused = new AbortController()
  const { stdout, stderr } = context
  // The run is followed across suspensions.
  const encoder = wire.createEncoder({ resumedAt: Infinity })
  const followed: Followed = { waiting: [], handedOver: [], isLineOpen: false }
  let isAsking = false
  const progress = createProgress(context, stderr, () => !(followed.isLineOpen && stdout.isTTY) && !isAsking)
  const tools = showsTools ? createToolLines(context) : undefined
  const open = new Map<string, OpenRequest>()
  let asked: Promise<void> = Promise.resolve()

  /** Call before writing to stderr: ends an open line of the answer if both are the same terminal. */
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
      // The terminal was closed.
      await client.stop(id, 'The terminal was closed without an answer.').catch(() => undefined)
      return
    }
    await give(id, request.requestId, answer).catch((error: unknown) => {
      // Another client answered first, or the run has ended: the log shows it.
      if (error instanceof MillraceError && !refusals.has(error.code)) return
      refused.abort()
      throw error
    })
  }

  function put(each: OpenRequest): void {
    if (each.isAsked || !ask.canAnswer(each.request)) return
    each.isAsked = true
    asked = asked.then(() => question(each.request, each.closed.signal))
    asked.catch(() => undefined)
  }

  /** True if the run waits for something that cannot be answered here. */
  function note(entry: Entry): boolean {
    if (entry.type === 'request') {
      const each = { request: entry, closed: new AbortController(), isAsked: false }
      open.set(entry.requestId, each)
      // An older request is asked only once the run is suspended again: it may have been answered since.
      if (entry.seq > after) put(each)
    } else if (entry.type === 'response') {
      open.get(entry.requestId)?.closed.abort()
      open.delete(entry.requestId)
    } else if (entry.type === 'tool-result' && entry.outcome === 'handed-over') followed.handedOver.push(entry.toolName)
    else if (entry.type === 'run-end') followed.end = entry
    // A fork with another input is suspended for no request, and goes on at once.
    else if (entry.type === 'suspend' && entry.seq > after && entry.requests.length > 0) {
      for (const each of open.values()) put(each)
      followed.waiting = [...open.values()].map(({ request }) => request)
      return !followed.waiting.some(ask.canAnswer)
    }
    return false
  }

  try {
    for await (const entry of client.follow(id, 0, { retries, signal: refused.signal })) {
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
      await writeOut(context, forStream(out, stdout))
    }
  } finally {
    progress.clear()
    off()
  }
  if (followed.end !== undefined) followed.waiting = []
  await asked
  return followed
}

/** Follows a run: streams its answer to stdout, shows progress on stderr, and asks its requests on the terminal. */
import type { CommandContext, Output } from '../context.ts'
import type { ClientAnswer, MillraceClient } from '../../client/client.ts'
import type { Entry, EntryOf } from '../../part/entry.ts'
import { agentResult, createAgentCalls, type AgentCall } from '../../fold/agent-calls.ts'
import { chainWords, createAgentsAbove } from '../../fold/agents-above.ts'
import type { RequestView } from '../../fold/run-view.ts'
import { MillraceError, wholeMessage } from '../../part/error.ts'
import type { Wire } from '../../wire/wire.ts'
import { type Ask, answerLines } from './requests.ts'
import { messageLine } from './message-line.ts'
import { progressWords } from '../../fold/progress-words.ts'
import { summaryWords } from '../../fold/summary-words.ts'
import { onConsoleLine } from '../terminal/console.ts'
import { formatDuration } from '../terminal/format.ts'
import { forStream, printable, paint, writeOut } from '../terminal/output.ts'
import { cut } from '../terminal/table.ts'
import type { AgentConnection } from '../connection.ts'
import { onEnding, type Ending } from '../process-events.ts'

export interface FollowOptions {
  wire: Wire
  ask: Ask
  /** Entries up to this `seq` have been shown before. */
  after?: number
  /** Ask requests that are open at `after` at once, not only when the run is suspended again. */
  asksOpen?: boolean
  /** Show tool calls and their results on stderr. */
  showsTools?: boolean
  /** Called before a question reads the keyboard, and after it. */
  onAsking?: (isAsking: boolean) => void
  /** Sends an answer; by default, `client.answer`. */
  sendAnswer?: (id: string, requestId: string, answer: ClientAnswer) => Promise<unknown>
}

/** The state of the run when following stopped. */
export interface Followed {
  /** Absent if the run is suspended. */
  end?: EntryOf<'run-end'>
  /** Open requests that cannot be answered here. */
  waiting: RequestView[]
  /** Client tools that were called but not run: a run without a log cannot wait for them. */
  handedOver: string[]
  /** The runs that begin with messages for this one, and the ids of those that a stop has dropped. */
  nextRuns: string[]
  dropped: string[]
  /** The printed answer does not end with a newline yet. */
  isLineOpen: boolean
}

interface OpenRequest {
  request: RequestView
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
  const { wire, ask, after = 0, asksOpen = false, showsTools = false, onAsking } = options
  const { sendAnswer = (...answer) => client.answer(...answer) } = options
  /** An answer was refused, so that the run would wait for ever. */
  const refused = new AbortController()
  const { stdout, stderr } = context
  // The run is followed across suspensions.
  const encoder = wire.createEncoder({ resumedAt: Infinity })
  const followed: Followed = { waiting: [], handedOver: [], nextRuns: [], dropped: [], isLineOpen: false }
  let isAsking = false
  const progress = createProgress(context, stderr, () => !(followed.isLineOpen && stdout.isTTY) && !isAsking)
  const above = createAgentsAbove()
  const lines = createLines(context, showsTools)
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

  async function question(request: RequestView, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    endLine()
    isAsking = true
    onAsking?.(true)
    const answer = await ask.answer(request, signal).catch(() => undefined)
    isAsking = false
    onAsking?.(false)
    if (signal.aborted) return
    if (answer === undefined) {
      // The terminal was closed.
      await client.stop(id, 'The terminal was closed without an answer.').catch(() => undefined)
      return
    }
    await sendAnswer(id, request.requestId, answer).catch((error: unknown) => {
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
      const each = { request: { ...entry, ...above.field(entry.step) }, closed: new AbortController(), isAsked: false }
      open.set(entry.requestId, each)
      // An older request is asked only once the run is suspended again: it may have been answered since.
      if (entry.seq > after) put(each)
    } else if (entry.type === 'response') {
      open.get(entry.requestId)?.closed.abort()
      open.delete(entry.requestId)
    } else if (entry.type === 'tool-result' && entry.outcome === 'handed-over') followed.handedOver.push(entry.toolName)
    else if (entry.type === 'run-end') followed.end = entry
    else if (entry.type === 'message' && entry.runId !== undefined && !followed.nextRuns.includes(entry.runId))
      followed.nextRuns.push(entry.runId)
    else if (entry.type === 'message' && entry.outcome === 'dropped') followed.dropped.push(entry.id)
    // A fork with another input is suspended without a request, and continues at once.
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
      above.apply(entry)
      const waits = note(entry)
      if (asksOpen && entry.seq === after) for (const each of open.values()) put(each)
      const line = lines.apply(entry)
      if (isNew && line !== undefined) {
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

/** Dimmed lines: one for each agent that a model calls and one for its end, and in a chat one for each tool call and each result. */
function createLines(context: CommandContext, showsTools: boolean, stream: Output = context.stderr) {
  const calls = createAgentCalls()
  const line = (text: string) => {
    const flat = printable(text.replaceAll(/[\n\r\t]+/gu, ' '))
    return paint(context, 'dim', cut(flat, (stream.isTTY && stream.columns) || 160), stream)
  }

  function ended(call: AgentCall, { timestamp, isError, result }: EntryOf<'tool-result'>): string {
    const time = formatDuration(Math.max(0, timestamp - call.startedAt))
    return line(`${nameOf(call)} ${isError === true ? `failed in ${time}: ${textOf(result)}` : `completed in ${time}`}`)
  }

  function started(entry: EntryOf<'step-start'>): string | undefined {
    if (entry.handoff === true && entry.agent !== undefined) return line(`agent ${entry.agent} takes over`)
    const call = calls.start(entry)
    return call && line(`${nameOf(call)} started`)
  }

  return {
    apply(entry: Entry): string | undefined {
      if (entry.type === 'step-start') return started(entry)
      if (entry.type === 'message') return line(messageLine(entry))
      if (entry.type === 'summarized') return line(`≡ ${summaryWords(entry)}`)
      const call = agentResult(calls, entry)
      if (call !== undefined) return ended(call, entry as EntryOf<'tool-result'>)
      if (entry.type === 'step-finish') calls.end(entry.step)
      else if (entry.type === 'step-reset') for (const { path } of calls.under(entry.step)) calls.end(path)
      // Of called agents only their starts and ends are shown.
      if (!showsTools || calls.around(entry.step) !== undefined) return undefined
      if (entry.type === 'tool-call') return line(`→ ${entry.toolName} ${entry.input}`)
      if (entry.type !== 'tool-result' || entry.preliminary === true) return undefined
      const { toolName, result, isError } = entry
      return line(`← ${toolName}${isError === true ? ' failed:' : ''} ${textOf(result)}`)
    },
  }
}

/** Without the run's own agent, which is known. */
function nameOf(call: AgentCall): string {
  const agents = [call.agent]
  for (let at = call.parent; at !== undefined; at = at.parent) agents.unshift(at.agent)
  return `agent ${chainWords(agents)}`
}

function textOf(result: unknown): string {
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
}

/** Shows the current step of a run in one terminal line, which is erased before anything else is printed. */
interface Progress {
  /** Records started and finished steps, and shows the most recent one that is still running. */
  apply(entry: Entry): void
  /** Call before printing anything. */
  clear(): void
}

const silent: Progress = { apply: () => undefined, clear: () => undefined }

/** `atLineStart`: whether the cursor is at the start of a line. */
function createProgress(context: CommandContext, stream: Output, atLineStart: () => boolean): Progress {
  if (!stream.isTTY) return silent
  const running = new Map<string, { what: string; since: number; says?: string }>()
  let isShown = false
  let timer: ReturnType<typeof setInterval> | undefined

  function clear(): void {
    clearInterval(timer)
    if (!isShown) return
    stream.write('\r\u001b[K')
    isShown = false
  }

  function show(): void {
    clear()
    const last = [...running].at(-1)
    if (last === undefined || !atLineStart()) return
    const [path, { what, since, says }] = last
    const seconds = Math.floor((performance.now() - since) / 1000)
    const text = printable(
      `… ${path.replace(/^main\//u, '')}  ${what}${seconds === 0 ? '' : `  ${seconds}s`}${says === undefined ? '' : `  ${says}`}`,
    )
    // A longer line would wrap, and only its last row could be erased.
    stream.write(paint(context, 'dim', cut(text, (stream.columns || 80) - 1), stream))
    isShown = true
    timer = setInterval(show, 1000).unref()
  }

  return {
    clear,
    apply(entry) {
      const { type, step } = entry
      if (type === 'step-start') running.set(step, { what: entry.toolName ?? entry.stepType, since: performance.now() })
      else if (type === 'step-finish') running.delete(step)
      else {
        const words = progressWords(entry)
        const known = running.get(step)
        if (words === undefined || known === undefined) return
        known.says = words
      }
      show()
    },
  }
}

/** One message and its answer, for `run` and `chat`: starts a run, shows it, and stops it on Ctrl-C. */
interface Turn extends FollowOptions {
  agent: string
  input: Record<string, unknown>
  threadId?: string | undefined
  /** Called before any part of the answer is shown. */
  onStart?: (id: string) => void
}

interface FollowedRun {
  id: string
  followed: Followed
  /** Set if a signal ended it. */
  ending: Ending | undefined
}

export async function runTurn(
  context: CommandContext,
  connection: AgentConnection,
  turn: Turn,
): Promise<FollowedRun & { threadId: string }> {
  const { agent, input, threadId, onStart, ...follow } = turn
  const { messages, ...rest } = input
  const options = { agent, input: rest, messages: messages as object[] }
  let thread = threadId
  const result = await followStarted(context, connection, follow, async () => {
    const run = connection.client.run(threadId === undefined ? options : { ...options, threadId })
    const id = await run.id
    thread = await run.threadId
    onStart?.(id)
    return id
  })
  return { ...result, threadId: thread! }
}

/** Error codes for a server that has stopped or is stopping. */
const stoppedCodes: ReadonlySet<string> = new Set(['connection-lost', 'closing'])

/** Calls `begin`, which returns the id of a run, then shows that run. Ctrl-C stops it, even during `begin`. */
export async function followStarted(
  context: CommandContext,
  connection: AgentConnection,
  options: FollowOptions,
  begin: () => Promise<string>,
): Promise<FollowedRun> {
  const { client, url } = connection
  let ending: Ending | undefined
  let stop: (ending: Ending) => Promise<void> = async () => undefined
  const off = onEnding(context, (how) => {
    ending = how
    void stop(how).catch(() => undefined)
  })
  try {
    const id = await begin()
    stop = ({ reason }) => client.stop(id, reason)
    if (ending !== undefined) await stop(ending)
    const followed = await followRun(context, client, id, options).catch((error: unknown) => {
      if (url === undefined || !(error instanceof MillraceError) || !stoppedCodes.has(error.code)) throw error
      throw lostServer(url, id, connection.flags, error)
    })
    return { id, followed, ending }
  } finally {
    off()
  }
}

function lostServer(url: string, run: string, where: string, cause: unknown): MillraceError {
  const message = `Lost the connection to the server at ${url}. Check on the run with: millrace show ${run}${where}`
  return new MillraceError('server', message, { cause })
}

/** Prints the outcome of a run to stderr and returns the exit code. */
interface Reported {
  id: string
  followed: Followed
  /** Flags that other commands need to find the run. */
  where: string
  /** Print nothing if the run completed. */
  isQuiet?: boolean
  /** Set if a signal ended the command. */
  ending?: Ending | undefined
}

/** Prints how the run ended, or its open requests. Returns the exit code. */
export function reportRun(context: CommandContext, { id, followed, where, isQuiet = false, ending }: Reported): number {
  const { end, waiting, handedOver, isLineOpen } = followed
  // On a terminal, the notice of the signal has ended the line already.
  if (isLineOpen && !(ending !== undefined && context.stdout.isTTY)) context.stdout.write('\n')
  if (end === undefined) {
    const lines = answerLines(id, waiting, where)
    print(context, `suspended: ${id} waits for an answer. Answer with:`, ...lines)
    return ending?.code ?? 1
  }
  if (!isQuiet || end.outcome !== 'completed') print(context, lastLine(end))
  if (handedOver.length > 0) {
    const names = [...new Set(handedOver)].join(', ')
    print(
      context,
      `${names}: runs in the client, and a run that is not recorded cannot wait for its result. Remove --data none.`,
    )
    return ending?.code ?? 1
  }
  return end.outcome === 'completed' ? 0 : (ending?.code ?? 1)
}

function lastLine({ outcome, error, usage }: EntryOf<'run-end'>): string {
  const { inputTokens, outputTokens, source } = usage
  // A run without a model call has no tokens.
  const isSilent = (inputTokens ?? 0) + (outputTokens ?? 0) === 0
  const tokens = isSilent ? '' : `; ${inputTokens ?? '?'} tokens in, ${outputTokens ?? '?'} out (${source})`
  const why = error === undefined ? '' : `: ${wholeMessage(error).replace(/\.+$/u, '')}`
  return `${outcome}${why}${tokens}`
}

function print(context: CommandContext, ...lines: string[]): void {
  context.stderr.write(`${printable(lines.join('\n'))}\n`)
}

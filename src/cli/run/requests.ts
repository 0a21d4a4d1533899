/**
 * The open requests of a run: lists them, prints the commands that answer them, and answers them from the terminal, with `--yes`, or
 * not at all.
 */
import { signInReason } from '../../part/sign-in-request.ts'
import { ownValue } from '../../part/own-value.ts'
import { createInterface } from 'node:readline/promises'
import type { CommandContext } from '../context.ts'
import type { ClientAnswer } from '../../client/client.ts'
import type { EntryOf } from '../../part/entry.ts'
import { chainWords } from '../../fold/agents-above.ts'
import type { RequestView } from '../../fold/run-view.ts'
import { parseJson } from '../../part/json.ts'
import { printable, paint } from '../terminal/output.ts'
import type { InputRequest } from '../../part/request-part.ts'
import { formatTime } from '../terminal/format.ts'
import { formatTable, cut } from '../terminal/table.ts'
import { MillraceError } from '../../part/error.ts'
import type { RunRow } from '../../part/log.ts'
import type { Message } from '../../part/message.ts'
import type { AgentConnection, Connection } from '../connection.ts'

/** The request id without the prefix of the run id. */
export function shortRequestId(run: string, { requestId }: EntryOf<'request'>): string {
  return requestId.startsWith(`${run}.`) ? requestId.slice(run.length + 1) : requestId
}

/** The question of a step. */
export function questionOf({ message, reason }: Pick<InputRequest, 'message' | 'reason'>): string {
  return message ?? reason ?? 'a value'
}

/** A command to paste. `isOneOfMany`: adds `--request`. */
export function answerLine(
  run: string,
  request: EntryOf<'request'>,
  { where, isOneOfMany }: { where: string; isOneOfMany: boolean },
): string {
  // Without an answer it asks, and prints where to sign in.
  const answer = request.kind === 'approval' ? ' approve' : isSignIn(request) ? '' : ` '<JSON or text>'`
  const which = isOneOfMany ? ` --request ${shortRequestId(run, request)}` : ''
  return `millrace answer ${run}${answer}${which}${where}`
}

export function answerLines(run: string, requests: readonly EntryOf<'request'>[], where: string): string[] {
  return requests.map((request) => `  ${answerLine(run, request, { where, isOneOfMany: requests.length > 1 })}`)
}

type Request = RequestView

export interface Ask {
  /** False if this request cannot be answered here: the run then waits for an answer from elsewhere. */
  canAnswer(request: Request): boolean
  /** Called for one request at a time. Rejects when `signal` aborts or the terminal is closed. */
  answer(request: Request, signal: AbortSignal): Promise<ClientAnswer>
}

export interface AskOptions {
  /** Approve without asking. */
  yes?: boolean | undefined
  /** Without a terminal, leave approvals open instead of denying them. */
  leaves?: boolean
  /** URL of the server that runs the agent. Absent: this process does. */
  url?: string | undefined
}

export function createAsk(context: CommandContext, { yes = false, leaves = false, url }: AskOptions = {}): Ask {
  const isTerminal = context.stdin.isTTY === true
  return {
    canAnswer: ({ kind }) => isTerminal || (kind === 'approval' && (yes || !leaves)),
    async answer(request, signal) {
      if (request.kind === 'approval' && yes) return { approved: true }
      if (isTerminal) return askOnTerminal(context, request, signal, url)
      return { approved: false, reason: 'not approved: no terminal to ask on' }
    },
  }
}

/** Rejects when `signal` aborts or the terminal is closed. */
async function askOnTerminal(
  context: CommandContext,
  request: Request,
  signal: AbortSignal,
  url: string | undefined,
): Promise<ClientAnswer> {
  const terminal = createInterface({ input: context.stdin, output: context.stderr })
  // Ctrl-C at the question stops the run.
  terminal.on('SIGINT', () => context.events.emit('SIGINT'))
  const ended = new AbortController()
  terminal.on('close', () => ended.abort())
  const ask = async (question: string) =>
    (
      await terminal.question(paint(context, 'bold', question, context.stderr), {
        signal: AbortSignal.any([signal, ended.signal]),
      })
    ).trim()
  const from = request.agents === undefined ? '' : printable(`[${chainWords(request.agents)}] `)
  try {
    if (request.kind === 'input' && isSignIn(request)) {
      const said = await ask(`${from}${printable(signInWords(request, url))} Press Enter when you have, or type no: `)
      return /^no?$/iu.test(said) ? { cancelled: true } : { value: true }
    }
    if (request.kind === 'input') {
      return { value: jsonOrText(await ask(`${from}${printable(questionOf(request))} Enter a value (JSON or text): `)) }
    }
    const { kind, toolName, input } = request
    // Model output must not be able to disguise itself with control characters.
    const what = printable(`${toolName} ${JSON.stringify(input)}`)
    if (kind === 'approval') return { approved: /^y(?:es)?$/iu.test(await ask(`${from}Allow ${what}? [y/N] `)) }
    return { output: jsonOrText(await ask(`${from}${what} runs in the client. Enter its result (JSON or text): `)) }
  } finally {
    terminal.close()
  }
}

function isSignIn(request: EntryOf<'request'>): boolean {
  return request.kind === 'input' && request.reason === signInReason
}

/** Where a person signs in to an MCP server. */
function signInWords({ metadata }: InputRequest, url: string | undefined): string {
  const [server, path] = ['server', 'url'].map((key) => String(ownValue(metadata, key)))
  const how =
    url === undefined ? `run millrace mcp login ${server} in another terminal` : `open ${new URL(path!, url).href}`
  return `Sign in to the MCP server "${server}": ${how}.`
}

/** The result of a tool as typed: JSON if it parses, else text. */
export function jsonOrText(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}

/** The open requests of a run as a table. */
export function formatRequests(run: string, requests: readonly RequestView[]): string {
  const isCalled = requests.some(({ agents }) => agents !== undefined)
  const rows = requests.map((request) => {
    const { kind, toolName = '', deadline } = request
    const wanted = { approval: 'approval', tool: 'result', input: 'value' }[kind]
    const about = request.kind === 'input' ? questionOf(request) : JSON.stringify(request.input)
    const from = isCalled ? [chainWords(request.agents ?? [])] : []
    return [shortRequestId(run, request), wanted, ...from, toolName, formatTime(deadline), cut(about, 100)]
  })
  return formatTable(['REQUEST', 'WANTS', ...(isCalled ? ['FROM'] : []), 'TOOL', 'UNTIL', 'INPUT'], rows)
}

/** Threads that a command continues, and the run of a thread that is still suspended. */
interface Thread {
  /** Only the newest. */
  runs: RunRow[]
  /** The whole conversation. */
  messages: Message[]
}

/** Undefined if the thread has no runs. */
export async function readThread(connection: Connection, id: string): Promise<Thread | undefined> {
  try {
    return await connection.thread(id, { runs: 1 })
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'unknown-thread') return undefined
    throw error
  }
}

interface WaitingRun {
  id: string
  /** Its last entry so far. */
  lastSeq: number
  protocol: string
  requests: RequestView[]
}

/** The run that the next message of the thread would end: the newest one, if it is suspended. */
export async function waitingRun(
  { client }: AgentConnection,
  thread: Thread | undefined,
): Promise<WaitingRun | undefined> {
  const [newest] = thread?.runs ?? []
  if (newest?.status !== 'suspended') return undefined
  const { id, lastSeq, protocol, requests } = await client.show(newest.id)
  return requests.length === 0 ? undefined : { id, lastSeq, protocol, requests }
}

/** A new message ends a suspended run of its thread. */
export function warnOfEnd(context: CommandContext, { id, requests }: WaitingRun, ...more: string[]): void {
  const tools = [...new Set(requests.map(({ toolName, kind }) => toolName ?? kind))].join(', ')
  const line = `warning: ${id} of this thread waits for an answer (${tools}); a new message ends that run`
  context.stderr.write(`${printable([line, ...more].join('\n'))}\n`)
}

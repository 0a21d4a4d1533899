/** Decides, for every route that accepts a conversation, whether a request continues a run or starts one. */
import { omitUndefined } from '../part/omit-undefined.ts'
import type { Message } from '../part/message.ts'
import type { CallSettings } from '../part/part.ts'
import type { BusyPolicy, HistoryPolicy } from '../pipeline/pipeline.ts'
import type { McpHeaders } from '../tools/mcp/own-headers.ts'
import { withServerMessages } from './history.ts'
import {
  type TurnAnswer,
  answerBefore,
  answerOf,
  isAbout,
  conflict,
  isSame,
  placeOf,
  checkAnswer,
  checkEdit,
  plainAnswer,
} from './answer-to.ts'
import type { Run, Runtime } from './runtime.ts'
import type { KeptRun } from '../fold/kept-run.ts'
import { keptOf, readInput } from '../fold/read-view.ts'
import { type RunRow, type Store, hasEnded } from '../part/log.ts'
import type { Reply } from '../part/request-part.ts'
import { checkRunInput } from './check-run-input.ts'
import { claimFor } from './announcements.ts'
import { agentOfStart, pipelineOfRun, type StartedAs } from './own-text.ts'
import { unknownAgent } from './runtime-errors.ts'
import { steerTurn } from './steer-turn.ts'

export interface Turn {
  agentId: string
  /** Without it the run gets its own thread. */
  threadId?: string
  messages: Message[]
  /** Tool results, approvals and values in the request: replies. */
  answers: readonly TurnAnswer[]
  /** All other keys of the request, as `$input.…`. */
  input: Record<string, unknown>
  /** Identifies this turn in its thread: a request with a key seen before joins its run instead of starting another. */
  turnKey?: string
  protocol: string
  labels?: Record<string, string>
  /** Options of its wire: see `RunStart`. */
  wireOptions?: object
  /** The header of the request. */
  traceparent?: string | null
  /** The protocol's policies, unless the agent sets others. */
  onBusy: BusyPolicy
  /** With `onBusy: steer` in the agent's file, its new message goes into the active run of its thread. */
  steers?: boolean
  keepsSuspended?: boolean
  /**
   * The thread only groups runs: a turn without `threadId` joins the thread of the run that made the calls in its messages, and runs do not wait
   * for each other.
   */
  groups?: boolean
  history: HistoryPolicy
  /** Continues this run instead of the thread's last one: see `StartOptions`. Such a turn starts a run, and replies to no suspended one. */
  previousRunId?: string | null
  handOver?: boolean
  /** Runs this YAML text as the agent: see `StartOptions`. */
  pipeline?: string | null
  /** Settings of the request for the answering model. */
  settings?: CallSettings
  /** Ignored settings of the request: see `StartOptions`. */
  ignored?: readonly string[]
  /** Headers for MCP servers, for this run alone: see `StartOptions`. The runtime checks them. */
  mcpHeaders?: unknown
}

export interface Turned {
  run: Run
  how: 'started' | 'resumed' | 'joined' | 'steered'
  /** The `seq` of the `resume` or `message` at which this turn's part of the answer starts; 0 if it starts with the run. */
  from: number
}

export async function continueOrStart(runtime: Runtime, asked: Turn): Promise<Turned> {
  const turn = asked.threadId === undefined ? asked : { ...asked, threadId: runtime.threadId(asked.threadId) }
  if (turn.previousRunId !== undefined) return started(runtime, turn, await asStarted(runtime, turn))
  const answered = (await resumed(runtime, turn)) ?? (await joinAnswered(runtime, turn))
  if (answered !== undefined) return answered
  const known = await asStarted(runtime, turn)
  const steered = turn.steers === true ? await steerTurn(runtime, turn, known) : undefined
  if (steered === undefined) return started(runtime, turn, known)
  return 'turned' in steered ? steered.turned : started(runtime, { ...turn, ...steered }, known)
}

/** The agent as a new run of this turn has it. */
async function asStarted(runtime: Runtime, turn: Turn): Promise<StartedAs> {
  const agent = runtime.agents.get(turn.agentId)
  if (agent === undefined) throw unknownAgent(turn.agentId, runtime.agents)
  return agentOfStart(runtime.store, agent, turn)
}

/** The options without default values. */
function askedOf(options: object = {}): Record<string, unknown> | undefined {
  const isUsual = (value: unknown) =>
    value === undefined || value === false || (Array.isArray(value) && value.length === 0)
  const asked = Object.entries(options).filter(([, value]) => !isUsual(value))
  return asked.length === 0 ? undefined : Object.fromEntries(asked)
}

async function started(runtime: Runtime, turn: Turn, { pipeline, own }: StartedAs): Promise<Turned> {
  const {
    agentId,
    protocol,
    labels,
    input,
    turnKey,
    handOver,
    history,
    settings,
    ignored,
    keepsSuspended,
    mcpHeaders,
    previousRunId,
    groups = false,
  } = turn
  const fromServer = (pipeline.history ?? history) === 'server'
  // The server has no messages of a new thread.
  const goesOn = turn.threadId !== undefined || previousRunId != null
  const known = fromServer && goesOn ? turn : await withServerMessages(runtime, turn.threadId, turn.messages, agentId)
  const { messages } = known
  const threadId = turn.threadId ?? (groups ? known.threadId : undefined)
  // That of a thread which only its messages name is found at the start.
  const text = own ? pipeline.text : threadId === turn.threadId ? null : turn.pipeline
  const run = await runtime.start(agentId, messages.length === 0 ? input : { ...input, messages }, {
    protocol,
    onBusy: turn.onBusy,
    history,
    traceparent: turn.traceparent,
    ...omitUndefined({ threadId, labels, handOver, turnKey, settings, ignored, keepsSuspended, previousRunId }),
    ...omitUndefined({ wireOptions: askedOf(turn.wireOptions), pipeline: text }),
    ...(groups && { isBeside: true }),
    ...(mcpHeaders != null && { mcpHeaders: mcpHeaders as McpHeaders }),
  })
  return { run, how: run.joined ? 'joined' : 'started', from: 0 }
}

/*
 * A reply to a run that has completed since: from a client that was slower than another, or that sends it again. It must not start a run, in which
 * tools would run a second time.
 */

/** The newest run of a thread, with its stored view. */
export async function newestRun(store: Store, threadId: string): Promise<{ row: RunRow; stored: KeptRun } | undefined> {
  const row = (await store.runs.list({ threadId, limit: 1 }))[0]
  const stored = row && (await keptOf(store, row))
  return row && stored && { row, stored }
}

/** Joins the run that has the reply. Throws `answer-conflict` (409) if it has another one. */
async function joinAnswered({ store, open, redact }: Runtime, turn: Turn): Promise<Turned | undefined> {
  const { threadId, answers } = turn
  if (threadId === undefined || turn.handOver === true || !isAnswer(turn)) return undefined
  const { row, stored } = (await newestRun(store, threadId)) ?? {}
  // A failed run may be retried.
  if (row?.status !== 'completed' || stored === undefined) return undefined
  let isKnown = false
  for (const each of answers) {
    const before = await answerBefore(store, stored, each)
    if (before === undefined) continue
    const answer = await plainAnswer(store.log, row.id, redact(answerOf(each, before.kind)), isAbout(each))
    // For an approved tool, the client may already have the result.
    if (answer.kind !== before.kind) continue
    if (!isSame(before, answer)) throw conflict(placeOf(each))
    isKnown = true
  }
  const run = isKnown ? await open(row.id) : undefined
  return run && { run, how: 'joined', from: stored.resumedAt }
}

/** Whether the request ends with a reply: a client that has read beyond the reply wants a new run. */
function isAnswer({ answers, messages }: Turn): boolean {
  if (answers.some((each) => 'requestId' in each || each.answer.kind === 'approval')) return true
  return answers.length > 0 && messages.at(-1)?.role === 'tool'
}

/* A request that replies to the suspended run of its thread: the replies are posted and the run continues. */

/** The newest run of a thread, with its stored view, if it has not ended. */
export async function activeRun(store: Store, threadId: string): Promise<{ row: RunRow; stored: KeptRun } | undefined> {
  const newest = await newestRun(store, threadId)
  return newest === undefined || hasEnded(newest.row.status) ? undefined : newest
}

/** Only requests of this thread can be answered. With the id alone, one client could reply for another. */
async function resumed(runtime: Runtime, turn: Turn): Promise<Turned | undefined> {
  const { store, answerAll, open, redact } = runtime
  const { threadId, protocol, labels, input, answers, turnKey } = turn
  if (threadId === undefined || answers.length === 0 || turn.handOver === true) return undefined
  const { row, stored } = (await activeRun(store, threadId)) ?? {}
  if (row === undefined || stored === undefined) return undefined
  const run = await open(row.id)
  if (run === undefined) return undefined
  const byId = new Map(stored.requests.map((request) => [request.requestId, request]))
  const byCall = new Map(
    stored.requests.flatMap((request) => (request.kind === 'input' ? [] : [[request.toolCallId, request] as const])),
  )
  const matched = new Map<string, Reply>()
  let again = false
  let contrary: string | undefined
  for (const each of answers) {
    const request = 'requestId' in each ? byId.get(each.requestId) : byCall.get(each.toolCallId)
    // Redacted like the stored ones, so that a repeated reply compares equal.
    const given = request && redact(answerOf(each, request.kind))
    const answer = given && (await plainAnswer(store.log, row.id, given, isAbout(each)))
    // A client tool with approval has two requests: while the second is open, clients repeat the approval.
    const isRepeated = request?.kind === 'tool' && answer?.kind === 'approval'
    const before = request === undefined || isRepeated ? await answerBefore(store, stored, each, answer) : undefined
    if (request !== undefined && answer !== undefined && before === undefined) {
      if ('requestId' in each || request.kind === 'approval') checkAnswer(request, answer)
      await checkEdit(store.log, row.id, request, answer)
      matched.set(request.requestId, answer)
      continue
    }
    if (before === undefined) continue
    const repeated = await plainAnswer(store.log, row.id, redact(answerOf(each, before.kind)), isAbout(each))
    if (isSame(before, repeated)) again = true
    else contrary = placeOf(each)
  }
  if (matched.size > 0) {
    const pipeline = await pipelineOfRun(runtime, row)
    // Input that comes with a reply is merged into the run's input, so the result is checked before the run continues.
    if (pipeline !== undefined) {
      const before = { ...(await readInput(store.log, row.id)), ...stored.resumedInput }
      checkRunInput(pipeline, { ...before, ...input })
    }
    const counted = await answerAll(row.id, matched, { protocol, input, ...omitUndefined({ labels }) }, turn.mcpHeaders)
    // If two clients reply at the same time, the first reply counts and the other client gets a 409.
    for (const { requestId, toolCallId } of stored.requests) {
      const given = matched.get(requestId)
      const winner = counted.get(requestId)
      if (given !== undefined && winner !== undefined && !isSame(given, winner)) {
        throw conflict(toolCallId === undefined ? `Request ${requestId}` : `Tool call ${toolCallId}`)
      }
    }
    // So that the same request joins the run even if it has ended.
    if (turnKey !== undefined) await claimFor(store.log, threadId, `${row.agent}:${turnKey}`, row.id)
    // A run that was not suspended yet continues in its own stream; this delivery starts at its current position.
    return { run, how: stored.status === 'suspended' ? 'resumed' : 'joined', from: stored.lastSeq + 1 }
  }
  if (contrary !== undefined) throw conflict(contrary)
  // A repeated reply, from a client that retries or from another tab, must not interrupt the run that it resumed.
  return again ? { run, how: 'joined', from: stored.resumedAt } : undefined
}

/**
 * Identifies a chat turn by the id and content of its last user message. A repeated request joins the run of the first one.
 * Regenerating an answer, or editing a message (which keeps its id), is a new turn.
 */
export function turnKey(body: Record<string, unknown>): string | undefined {
  const { messages, trigger, messageId, pipeline } = body
  if (trigger === 'regenerate-message' || typeof messageId === 'string' || !Array.isArray(messages)) return undefined
  const last = messages.at(-1) as { id?: unknown; role?: unknown } | undefined
  if (last?.role !== 'user' || typeof last.id !== 'string' || last.id === '') return undefined
  return keyOf(last.id, last, pipeline)
}

/** The key of a turn with this id, this last message and this YAML. */
export function keyOf(id: string, last: unknown, pipeline?: unknown): string {
  return `${id}:${fnv1a((JSON.stringify(last) ?? '') + (typeof pipeline === 'string' ? pipeline : ''))}`
}

/** FNV-1a, 32 bit (http://www.isthe.com/chongo/tech/comp/fnv/): only distinguishes edited messages from repeated ones. */
function fnv1a(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0).toString(36)
}

/** Decides, for every route that accepts a conversation, whether a request continues a run or starts one. */
import { compact } from '../part/compact.ts'
import type { Message } from '../part/message.ts'
import type { CallSettings } from '../part/settings.ts'
import type { BusyPolicy, HistoryPolicy } from '../pipeline/pipeline.ts'
import type { McpHeaders } from '../tools/mcp/own-headers.ts'
import { withServerMessages } from './history.ts'
import { joinAnswered } from './late-answer.ts'
import { resumed } from './resume-turn.ts'
import type { TurnAnswer } from './turn-answer.ts'
import type { Run, Runtime } from './runtime.ts'

export interface Turn {
  agentId: string
  /** Without it the run gets its own thread. */
  threadId?: string
  messages: Message[]
  /** Tool results, approvals and values in the request. */
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
  keepsSuspended?: boolean
  /** Its thread groups runs and nothing else: without one it joins that of a run whose calls its messages have, and none waits for another. */
  groups?: boolean
  history: HistoryPolicy
  /** Not the thread's last run, but this one is continued: see `StartOptions`. Such a turn starts a run, and answers none that waits. */
  previousRunId?: string | null
  handOver?: boolean
  /** Settings of the request for the answering model. */
  settings?: CallSettings
  /** What of the request was ignored: see `StartOptions`. */
  ignored?: readonly string[]
  /** Headers for MCP servers, of this run alone: see `StartOptions`. The runtime checks them. */
  mcpHeaders?: unknown
}

export interface Turned {
  run: Run
  how: 'started' | 'resumed' | 'joined'
  /** The `seq` of the `resume` where this turn's part of the answer starts; 0 if it starts with the run. */
  from: number
}

export async function continueOrStart(runtime: Runtime, turn: Turn): Promise<Turned> {
  if (turn.previousRunId !== undefined) return started(runtime, turn)
  return (await resumed(runtime, turn)) ?? (await joinAnswered(runtime, turn)) ?? started(runtime, turn)
}

/** Without what is so by default. */
function askedOf(options: object = {}): Record<string, unknown> | undefined {
  const isUsual = (value: unknown) =>
    value === undefined || value === false || (Array.isArray(value) && value.length === 0)
  const asked = Object.entries(options).filter(([, value]) => !isUsual(value))
  return asked.length === 0 ? undefined : Object.fromEntries(asked)
}

async function started(runtime: Runtime, turn: Turn): Promise<Turned> {
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
  const { store, agents } = runtime
  const fromServer = (agents.get(agentId)?.pipeline.history ?? history) === 'server'
  // Of a thread that begins the server has nothing yet.
  const goesOn = turn.threadId !== undefined || previousRunId != null
  const known = fromServer && goesOn ? turn : await withServerMessages(store, turn.threadId, turn.messages, agentId)
  const { messages } = known
  const threadId = turn.threadId ?? (groups ? known.threadId : undefined)
  const run = await runtime.start(agentId, messages.length === 0 ? input : { ...input, messages }, {
    protocol,
    onBusy: turn.onBusy,
    history,
    traceparent: turn.traceparent,
    ...compact({ threadId, labels, handOver, turnKey, settings, ignored, keepsSuspended, previousRunId }),
    ...compact({ wireOptions: askedOf(turn.wireOptions) }),
    ...(groups && { isBeside: true }),
    ...(mcpHeaders != null && { mcpHeaders: mcpHeaders as McpHeaders }),
  })
  return { run, how: run.joined ? 'joined' : 'started', from: 0 }
}

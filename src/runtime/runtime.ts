/** The runtime's interface: runs, agents, and the options of a start, a fork and a reply. `create-runtime.ts` implements it. */
import type { SignIns } from '../tools/mcp/auth/sign-ins.ts'
import type { Entry } from '../part/entry.ts'
import type { ErrorValue, MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import type { CallSettings, Outcome } from '../part/part.ts'
import type { Actor, Role, RunUser } from '../part/principal.ts'
import type { Reply } from '../part/request-part.ts'
import type { ThreadRule } from '../part/thread.ts'
import type { Usage } from '../part/usage.ts'
import type { Redactor } from '../fold/redact.ts'
import type { BusyPolicy, DisconnectPolicy, HistoryPolicy, Pipeline } from '../pipeline/pipeline.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import type { McpHeaders } from '../tools/mcp/own-headers.ts'
import type { PostedAnswer } from '../engine/inbox.ts'
import type { WaitingMessage } from '../part/sent-message.ts'
import type { TellOptions, Told } from './tell-run.ts'

/** An agent of a runtime. */
export interface Agent {
  id: string
  pipeline: Pipeline
}

/** A source of agents. `get` also finds aliases, and returns the last valid version. */
export interface AgentSource {
  get(id: string): Agent | undefined
  list(): Agent[]
}

/** Options of a start. All are optional. */
export interface StartOptions {
  threadId?: string
  runId?: string
  protocol?: string
  parentRunId?: string
  /** Who starts it: recorded, and the run and its thread are theirs. Absent: they belong to no one. */
  user?: RunUser
  /** Ids from the client. */
  labels?: Record<string, string>
  /** The options of its wire: see `RunStart`. */
  wireOptions?: Record<string, unknown>
  /** The caller's `traceparent` (W3C Trace Context), which the run's start records. An invalid one is ignored. */
  traceparent?: string | null | undefined
  onBusy?: BusyPolicy
  /** The thread only groups its runs: a suspended one stays suspended. Default: it is stopped, because the conversation has continued. */
  keepsSuspended?: boolean
  /** Neither waits for runs of its thread nor stops any, whatever `onBusy` says. */
  isBeside?: boolean
  /** `server`: the input has only the new messages, and the thread's runs have the earlier ones. Default `client`. */
  history?: HistoryPolicy
  /**
   * With `history: server`: the run of the thread whose conversation this one continues, as a new branch if others continue it already; null begins
   * the thread's conversation anew. Default: the thread's last run.
   */
  previousRunId?: string | null
  /** It begins with a message for the thread's last run: after that run has ended, with its conversation, whatever the agent's policies are. */
  follows?: boolean
  handOver?: boolean
  /** Nobody listens for calls of client tools: the model learns at once that their results are unavailable. */
  noClientTools?: boolean
  /** If the thread already has a run with this key, the start joins that run. */
  turnKey?: string
  /**
   * Runs this YAML text as the agent, instead of its file. The names in it are checked only when they are used. Later runs of the agent in the thread
   * have the text, too, until one gets another, or null: the file. Default: what the agent's last run in the thread had.
   */
  pipeline?: string | null
  /** Settings of the request for the answering model. */
  settings?: CallSettings
  /** Ignored settings of the request: they become `warning` parts of the run. */
  ignored?: readonly string[]
  /** Server → header → value: sent to these MCP servers by this run alone, in addition to the config's. Never recorded. */
  mcpHeaders?: McpHeaders
}

/** A run of this runtime. */
export interface Run {
  id: string
  threadId: string
  /** The run existed before the call that returned it. */
  joined: boolean
  /** The log from its start, then live, until the run ends. You can iterate it several times. */
  parts: AsyncIterable<Entry>
  /**
   * The outcome, once the run has ended or is suspended, in any process. Never rejects: a failure is an outcome. If this runtime closes first, the
   * outcome is `moved`.
   */
  result: Promise<RunResult>
  stop(reason?: string): Promise<void>
  answer(requestId: string, answer: Reply): Promise<Answered>
}

/** `duplicate`: the request had a reply or was closed. `answer` is the one that counts; `isSame`: it says what this reply says. */
export interface Answered {
  duplicate: boolean
  isSame: boolean
  answer: PostedAnswer
}

/** Starts, resumes and stops runs. Methods reject with a `MillraceError`, with an HTTP `status` where one applies. */
export interface Runtime {
  readonly agents: AgentSource
  /** The registered tools. */
  readonly tools: ReadonlyMap<string, ToolImplementation>
  /** Of people with MCP servers. Undefined: no server of the config asks people. */
  readonly signIns: SignIns | undefined
  readonly store: Store
  /** The roles of the caller to whom this runtime is scoped. Absent: it may answer every request. */
  readonly roles?: readonly Role[]
  /**
   * Starts a run and resolves once its `run-start` is stored. In a busy thread the run may still wait for its turn. Rejects with
   * `bad-input` before anything is stored.
   */
  start(agentId: string, input: Record<string, unknown>, options?: StartOptions): Promise<Run>
  /**
   * Starts a run that shares the log of another up to an entry and continues from there, in its own thread. Resolves once its first entries are
   * stored. Rejects with `bad-input` or `bad-fork`, which name valid places, before anything is stored.
   */
  fork(runId: string, options: ForkOptions): Promise<Run>
  open(runId: string): Promise<Run | undefined>
  /** A run by its id, without a check that it exists. */
  handle(runId: string, threadId: string): Run
  /** The id in the log of a thread that a client of this runtime names: see `scopedThread`. */
  threadId(id: string): string
  stop(runId: string, reason?: string): Promise<void>
  /** Fails a run because of an error that nobody awaited, if it is active in this process. */
  fail(runId: string, error: MillraceError): FailEffect
  /** `consent`: for a run that was recorded elsewhere. Without it such a run continues only if its pipeline is that of an agent here. */
  answer(runId: string, requestId: string, answer: Reply, wake?: Wake, consent?: Consent): Promise<Answered>
  /** Posts several replies to a run and resumes it once. Resolves with the replies that count, by request id. */
  answerAll(
    runId: string,
    answers: ReadonlyMap<string, Reply>,
    wake?: Wake,
    mcpHeaders?: unknown,
  ): Promise<Map<string, Reply>>
  /**
   * Sends a message to an active run. Resolves when it is stored: the run's owner tells it to the model behind the current tool round or answer, in
   * any process. If the run ends first, it begins the thread's next run. Rejects with `unknown-run`, `run-ended` (409), `too-large`, and
   * `too-many-messages` (429).
   */
  tell(runId: string, message: TellOptions): Promise<Told>
  /** The messages that wait for a run, in order. */
  waiting(runId: string): Promise<WaitingMessage[]>
  /** Takes a waiting message back. Rejects with `unknown-message`, or `message-delivered` (409). */
  takeBack(runId: string, messageId: string): Promise<void>
  /** A deep copy without this runtime's secrets, for values that are printed or stored outside the log. */
  redact<T>(value: T): T
  /** Removes this runtime's secrets from the parts of one run, such as one that is imported. */
  redactor(): Redactor
  attach(runId: string, policy: DisconnectPolicy): (how?: { finished?: boolean }) => void
  /**
   * Calls `tell` once if the store fails, because the log cannot have that error; at once if the store has failed already. Returns a function that
   * removes the listener.
   */
  onLost(runId: string, tell: (error: ErrorValue) => void): () => void
  /** Continues or ends the runs of an earlier process. Call it once, before the first start. */
  recover(): Promise<{ resumed: number; interrupted: number }>
  readonly active: number
  /** When threads count as closed, as of now. */
  threadRule(): ThreadRule
  /**
   * Accepts no more runs, waits up to `graceMs` ms for active ones, then ends them as `interrupted`. Default 2000. Calls `beforeStore`
   * when all have ended and the store can still be read.
   */
  close(graceMs?: number, beforeStore?: () => Promise<void>): Promise<void>
}

/**
 * The outcome of a run that has ended or is suspended. `text` is the answer, `output` the pipeline’s value. `moved`: this runtime has closed before
 * that; the run continues in another process, or when one is started. Its error has the code `run-moved`.
 */
export interface RunResult {
  id: string
  outcome: Outcome | 'suspended' | 'moved'
  text: string
  output: unknown
  usage: Usage
  error?: ErrorValue
}

/** How a fork differs from its source. */
export interface ForkOptions {
  /** The `seq` of the last entry that the fork shares. At the run's end: everything before it. */
  at: number
  /** Merged into `$input`, for the steps that start later. */
  input?: Record<string, unknown>
  /** Continues as this agent, which must have the steps that have started. */
  agent?: string
  /** Continues with this YAML text, as its agent or as `agent`. The names in it are checked only when they are used. */
  pipeline?: string
  /** For a run that was recorded elsewhere: the programs in its recording may run. Pass it only for users who may edit agents. */
  trust?: boolean
  /** Default: a new id. With the id of an equal fork, that fork is returned. */
  runId?: string
  /** Who forks it: the fork is theirs. */
  user?: RunUser
  /** The agents that are open to who forks it. Default: all. */
  agents?: AgentSource
  protocol?: string
}

/** Further data of the request with a reply. It is posted with the reply, for the process that resumes the run. */
export interface Wake {
  protocol?: string
  labels?: Record<string, string>
  input?: Record<string, unknown>
  /** Who replies. */
  by?: Actor
  /** The roles of who replies, which a request may name. Not recorded. Absent: it may answer every request. */
  roles?: readonly Role[]
  /** The agents that are open to who replies: a run that was recorded elsewhere goes on as none but these. Not recorded. Default: all. */
  agents?: AgentSource
  /** The MCP servers for which it brought headers. */
  ownHeaders?: string[]
}

/** The caller's consent for a run that was recorded elsewhere. */
export interface Consent {
  /** It continues as this agent, with the agent's own text. */
  agent?: string
  /** The programs in its recording may run. The code that passes it on has checked that the caller may edit agents. */
  trust?: boolean
}

/**
 * `failed`: the run ends as failed. `completed`: its answer had ended, so it ends as completed; running steps are stopped. `ending`: its outcome
 * was decided before. `inactive`: it does not run in this process.
 */
export type FailEffect = 'failed' | 'completed' | 'ending' | 'inactive'

/**
 * The runtime owns all runs of this process: it starts, resumes and stops them, and recovers or ends those that a crash left.
 * A run belongs to the server. A connection only reads its log.
 */
import { compact } from '../part/compact.ts'
import type { Entry } from '../part/entry.ts'
import type { ErrorValue, MillraceError } from '../part/error.ts'
import { type Store, hasEnded, timeOf } from '../part/log.ts'
import type { Answer } from '../part/request-part.ts'
import { createCleaner, createRedactor, type Redactor } from '../fold/redact.ts'
import type { CallSettings } from '../part/part.ts'
import { defaultCloseAfterMs, type ThreadRule } from '../part/thread.ts'
import type { BusyPolicy, DisconnectPolicy, HistoryPolicy, Pipeline } from '../pipeline/pipeline.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import { secretsIn, toMcpHeaders, type McpHeaders } from '../tools/mcp/own-headers.ts'
import { createActiveRuns } from './active-runs.ts'
import { createAdoption } from './adopt-runs.ts'
import { answerAll, answerRequest } from './answer-requests.ts'
import type { Consent } from './foreign-run.ts'
import { forkRun, type ForkOptions } from './fork-run.ts'
import { createHandles, type RunResult } from './run-handle.ts'
import type { PostedAnswer } from '../engine/inbox.ts'
import type { Wake } from './pending-answers.ts'
import type { RuntimeOptions, TimedOptions } from './runtime-options.ts'
import { createIdleThreads } from './idle-threads.ts'
import { closingError, unknownAgent, unknownRun } from './runtime-errors.ts'
import { startRun } from './start-run.ts'
import { createSupervisor, type FailEffect, type Supervisor } from './supervisor.ts'
import { createThreadQueue } from './thread-queue.ts'
import { awaitEntry } from './await-entry.ts'

/** ms beyond the grace time of its steps that the owner of a run in another process has to end it. */
const stopPatience = 2000

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
  /** Ids from the client. */
  labels?: Record<string, string>
  /** What the client asked of its protocol: see `RunStart`. */
  wireOptions?: Record<string, unknown>
  /** The caller's `traceparent` (W3C Trace Context), which the run's start records. An invalid one is ignored. */
  traceparent?: string | null | undefined
  onBusy?: BusyPolicy
  /** The thread only groups its runs: a suspended one is left waiting. Default: it is stopped, because the conversation has gone on. */
  keepsSuspended?: boolean
  /** It neither waits for runs of its thread nor stops any, whatever `onBusy` says. */
  isBeside?: boolean
  /** `server`: the input has only the new messages, and the thread's runs have the earlier ones. Default `client`. */
  history?: HistoryPolicy
  /**
   * With `history: server`: the run of the thread whose conversation this one continues, as a branch beside those that continue it
   * already; null begins the thread's conversation anew. Default: the thread's last run.
   */
  previousRunId?: string | null
  handOver?: boolean
  /** If the thread already has a run with this key, the start joins that run. */
  turnKey?: string
  /** Settings of the request for the answering model. */
  settings?: CallSettings
  /** What of the request was ignored: becomes `warning` parts of the run. */
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
   * The outcome, once the run has ended or is suspended, in whichever process. Never rejects: failure is an outcome, and so is that this
   * runtime closes before (`moved`).
   */
  result: Promise<RunResult>
  stop(reason?: string): Promise<void>
  answer(requestId: string, answer: Answer): Promise<Answered>
}

/** `duplicate`: the request was already answered or closed. `answer` is the one that counts. */
export interface Answered {
  duplicate: boolean
  answer: PostedAnswer
}

/** Starts, resumes and stops runs. Methods reject with a `MillraceError`, with an HTTP `status` where one applies. */
export interface Runtime {
  readonly agents: AgentSource
  /** The registered tools. */
  readonly tools: ReadonlyMap<string, ToolImplementation>
  readonly store: Store
  /**
   * Starts a run and resolves once its `run-start` is stored. In a busy thread the run may still wait for its turn. Rejects with
   * `bad-input` before anything is stored.
   */
  start(agentId: string, input: Record<string, unknown>, options?: StartOptions): Promise<Run>
  /**
   * Starts a run that shares the log of another up to an entry and goes on from there, in a thread of its own. Resolves once what it
   * does first is stored. Rejects with `bad-input` or `bad-fork`, which name places that fit, before anything is stored.
   */
  fork(runId: string, options: ForkOptions): Promise<Run>
  open(runId: string): Promise<Run | undefined>
  /** A run by its id, without a check that it exists. */
  handle(runId: string, threadId: string): Run
  stop(runId: string, reason?: string): Promise<void>
  /** Fails a run because of an error that nobody awaited, if it is active in this process. */
  fail(runId: string, error: MillraceError): FailEffect
  /** `consent`: for a run that was recorded elsewhere. Without it such a run goes on only if its pipeline is that of an agent here. */
  answer(runId: string, requestId: string, answer: Answer, wake?: Wake, consent?: Consent): Promise<Answered>
  /** Posts several answers to a run and resumes it once. Resolves with the answers that count, by request id. */
  answerAll(
    runId: string,
    answers: ReadonlyMap<string, Answer>,
    wake?: Wake,
    mcpHeaders?: unknown,
  ): Promise<Map<string, Answer>>
  /** A deep copy without this runtime's secrets, for values that are printed or stored outside the log. */
  redact<T>(value: T): T
  /** Removes this runtime's secrets from the parts of one run, such as one that is imported. */
  redactor(): Redactor
  attach(runId: string, policy: DisconnectPolicy): (how?: { finished?: boolean }) => void
  /**
   * Calls `tell` once if the store fails, so that the log cannot have the run's error; at once if the store has failed already.
   * Returns a function that removes the listener.
   */
  onLost(runId: string, tell: (error: ErrorValue) => void): () => void
  /** Continues or ends the runs that an earlier process left. Call it once, before the first start. */
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

export type { FailEffect } from './supervisor.ts'
export type { Wake } from './pending-answers.ts'
export type { Consent } from './foreign-run.ts'
export type { ForkOptions } from './fork-run.ts'
export type { RunResult } from './run-handle.ts'

export function createRuntime(given: RuntimeOptions): Runtime {
  const ownClock = { wall: () => timeOf(given.store), steady: () => performance.now() }
  const options: TimedOptions = { ...given, clock: given.clock ?? ownClock }
  const { agents, store, clock, secrets = [], secretKeys = [], graceMs = 300 } = options
  const { closeThreadsAfterMs = defaultCloseAfterMs } = options
  const closeAfterMs = closeThreadsAfterMs === 'none' ? Infinity : closeThreadsAfterMs
  const { newRunId = () => `run_${crypto.randomUUID().replaceAll('-', '')}` } = options
  const redact = createCleaner(secrets, secretKeys)
  const closing = new AbortController()
  const shutdown = closing.signal
  const look: Supervisor['look'] = (run, why) => (options.postsOnly ? announce(store, run) : supervisor.look(run, why))
  const owns = (id: string) => supervisor.owns(id)
  const stop = (run: string, reason?: string) =>
    stopRun({ store, supervisor: { owns, look }, shutdown, redact, patience: graceMs + stopPatience }, run, reason)
  const activeRuns = createActiveRuns(store.limits)
  const supervisor = createSupervisor({
    options,
    activeRuns,
    shutdown,
    stop,
    rejoin: (row) => queue.rejoin(row),
    watch: () => adoption.watch(),
  })
  const queue = createThreadQueue({ store, announcements: supervisor, shutdown, stop })
  const adoption = createAdoption(store, supervisor, shutdown)
  const idle = createIdleThreads({ store, clock, closeAfterMs, shutdown, look: supervisor.look })
  const redactOf = (run: string) => {
    const own = supervisor.headersOf(run)
    return own === undefined ? redact : createCleaner([...secrets, ...secretsIn(own)], secretKeys)
  }
  const starting = { store, models: options.registry.models, supervisor, activeRuns, shutdown, newRunId }
  const answers = { store, agents, redactOf, look, keepHeaders: supervisor.keepHeaders }
  const checkHeaders = (headers: unknown) => toMcpHeaders(headers, options.registry.mcp?.servers ?? new Map())

  const runtime: Runtime = {
    agents,
    tools: options.registry.tools,
    store,
    get active() {
      return supervisor.active
    },

    async start(agentId, input, startOptions = {}) {
      if (shutdown.aborted) throw closingError()
      const agent = agents.get(agentId)
      if (agent === undefined) throw unknownAgent(agentId, agents)
      const { runId, threadId, joined } = await startRun({ ...starting, queue }, agent, input, {
        ...startOptions,
        ...compact({ mcpHeaders: checkHeaders(startOptions.mcpHeaders) }),
      })
      return handle(runId, threadId, joined)
    },

    async fork(source, forkOptions) {
      const { runId, threadId, joined } = await forkRun({ ...starting, agents, clock }, source, forkOptions)
      return handle(runId, threadId, joined)
    },

    async open(runId) {
      const row = await store.runs.get(runId)
      return row === undefined ? undefined : handle(runId, row.threadId)
    },

    handle: (runId, threadId) => handle(runId, threadId),
    stop,
    fail: supervisor.fail,
    answer: (runId, requestId, answer, wake, consent) =>
      answerRequest(answers, runId, requestId, answer, wake, consent),
    answerAll: async (runId, all, wake, headers) => answerAll(answers, runId, all, wake, checkHeaders(headers)),
    redact,
    redactor: () => createRedactor(secrets, secretKeys),
    attach: supervisor.attach,
    onLost: supervisor.onLost,
    threadRule: () => ({ closeAfterMs, now: clock.wall() }),

    async recover() {
      const recovered = await adoption.recover()
      idle.watch()
      return recovered
    },

    async close(closeGraceMs = 2000, beforeStore) {
      closing.abort()
      await supervisor.close(closeGraceMs)
      await beforeStore?.()
      // Until here, runs that other processes have were followed.
      await handles.close()
      await Promise.all([options.registry.mcp?.close(), options.registry.processes?.close()])
      await store.close()
    },
  }
  const handles = createHandles({ store, supervisor, runtime })
  const { handle } = handles

  return runtime
}

/** Stops a run, wherever it is. */
interface StopContext {
  store: Store
  supervisor: Pick<Supervisor, 'owns' | 'look'>
  shutdown: AbortSignal
  redact<T>(value: T): T
  /** ms that the owner in another process has to end the run. After that nobody seems to own it. */
  patience: number
}

/** Tells the other processes that a run has a message, instead of looking at it here. */
async function announce({ fleet }: Pick<Store, 'fleet'>, run: string): Promise<undefined> {
  await fleet.want(run)
}

/**
 * Posts the stop. The run's owner reads it, here or elsewhere, and a run without owner is claimed and ended. Resolves when the
 * stop is posted, or the run without owner is ended. Rejects with `unknown-run` (404).
 */
async function stopRun(context: StopContext, run: string, reason = 'Stopped.'): Promise<void> {
  const { store, supervisor, redact } = context
  const { log, runs, fleet } = store
  const row = await runs.get(run)
  if (row === undefined && !supervisor.owns(run)) throw unknownRun(run)
  if (row !== undefined && hasEnded(row.status)) return
  await log.post(run, 'stop', { reason: redact(reason) })
  // An owner, even one that is about to start, reads it from its inbox.
  if (supervisor.owns(run)) return
  await supervisor.look(run, 'hint')
  if (supervisor.owns(run) || (await runs.get(run))?.status !== 'running') return
  // A fleet of several processes finds the runs that nobody owns by itself.
  if (fleet.shared) return
  await fleet.want(run)
  void endOrphan(context, run, row?.lastSeq ?? 0).catch(() => undefined)
}

/** Ends a run whose owner does not obey, because there is none: its process has died. */
async function endOrphan({ store, supervisor, shutdown, patience }: StopContext, run: string, after: number) {
  const ended = ({ type }: { type: string }) => type === 'run-end' || type === 'suspend'
  await awaitEntry(store.log, run, ended, { after, ms: patience, signal: shutdown })
  const row = await store.runs.get(run)
  if (shutdown.aborted || row === undefined || hasEnded(row.status) || supervisor.owns(run)) return
  await supervisor.look(run, 'orphan')
}

/**
 * The runtime owns all runs of this process: it starts, resumes and stops them, and recovers or ends orphans of a crash. A run belongs to the
 * server. A connection only reads its log.
 */
import { omitUndefined } from '../part/omit-undefined.ts'
import { type Store, hasEnded, timeOf } from '../part/log.ts'
import { createCleaner, createRedactor } from '../fold/redact.ts'
import { defaultCloseAfterMs } from '../part/thread.ts'
import { secretsIn, toMcpHeaders } from '../tools/mcp/own-headers.ts'
import { createActiveRuns } from './active-runs.ts'
import { createAdoption } from './adopt-runs.ts'
import { answerAll, answerRequest } from './answer-requests.ts'
import { forkRun } from './fork-run.ts'
import { createHandles } from './run-handle.ts'
import type { RuntimeOptions, TimedOptions } from './runtime-options.ts'
import { createIdleThreads } from './idle-threads.ts'
import { closingError, unknownAgent, unknownRun } from './runtime-errors.ts'
import { settleMessages, startNextRun, type NextRunContext } from './next-run.ts'
import { startRun } from './start-run.ts'
import { listWaiting, takeBack, tellRun } from './tell-run.ts'
import { createSupervisor, type Supervisor } from './supervisor.ts'
import { createThreadQueue } from './thread-queue.ts'
import { awaitEntry } from './await-entry.ts'
import type { Runtime } from './runtime.ts'

/** ms beyond its steps' grace time within which an owner in another process must end a stopped run. */
const stopPatience = 2000

/** How many runs a start looks at for messages that nobody has taken. */
const mostRecent = 100

export function createRuntime(given: RuntimeOptions): Runtime {
  const ownClock = { wall: () => timeOf(given.store), steady: () => performance.now() }
  const clocked = { ...given, clock: given.clock ?? ownClock }
  const signIns = given.registry.mcp?.people?.signIns({ log: given.store.log, now: clocked.clock.wall })
  const options: TimedOptions = { ...clocked, signIns }
  const { agents, store, clock, secrets = [], secretKeys = [], graceMs = 300 } = options
  const { closeThreadsAfterMs = defaultCloseAfterMs } = options
  const closeAfterMs = closeThreadsAfterMs === 'none' ? Infinity : closeThreadsAfterMs
  const { newRunId = () => `run_${crypto.randomUUID().replaceAll('-', '')}` } = options
  const redact = createCleaner(secrets, secretKeys)
  const closing = new AbortController()
  const shutdown = closing.signal
  const reconcile: Supervisor['reconcile'] = (run, why) =>
    options.postsOnly ? announce(store, run) : supervisor.reconcile(run, why)
  const owns = (id: string) => supervisor.owns(id)
  const stop = (run: string, reason?: string) =>
    stopRun(
      { store, supervisor: { owns, reconcile: reconcile }, shutdown, redact, patience: graceMs + stopPatience },
      run,
      reason,
    )
  const activeRuns = createActiveRuns(store.limits)
  const supervisor = createSupervisor({
    options,
    activeRuns,
    shutdown,
    stop,
    rejoin: (row) => queue.rejoin(row),
    watch: () => adoption.watch(),
    newRunId,
    startNext: (before, next) => startNextRun(nextRuns, before, next),
    settleMessages: (run) => settleMessages(nextRuns, run),
  })
  const queue = createThreadQueue({ store, announcements: supervisor, shutdown, stop })
  const adoption = createAdoption(store, supervisor, shutdown)
  const idle = createIdleThreads({ store, clock, closeAfterMs, shutdown, reconcile: supervisor.reconcile })
  const redactOf = (run: string) => {
    const own = supervisor.headersOf(run)
    return own === undefined ? redact : createCleaner([...secrets, ...secretsIn(own)], secretKeys)
  }
  const starting = { store, models: options.registry.models, supervisor, activeRuns, shutdown, newRunId }
  const nextRuns: NextRunContext = {
    store,
    agents,
    start: (agent, input, how) => startRun({ ...starting, queue }, agent, input, how),
  }
  const telling = {
    store,
    shutdown,
    redactOf,
    now: clock.wall,
    // A process that executes no runs leaves it to those that do.
    settle: (run: string) => (options.postsOnly ? Promise.resolve() : settleMessages(nextRuns, run)),
  }
  const answers = { store, agents, redactOf, reconcile, keepHeaders: supervisor.keepHeaders }
  const checkHeaders = (headers: unknown) => toMcpHeaders(headers, options.registry.mcp?.servers ?? new Map())

  const runtime: Runtime = {
    agents,
    tools: options.registry.tools,
    signIns,
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
        ...omitUndefined({ mcpHeaders: checkHeaders(startOptions.mcpHeaders) }),
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
    threadId: (id) => id,
    stop,
    fail: supervisor.fail,
    answer: (runId, requestId, answer, wake, consent) =>
      answerRequest(answers, runId, requestId, answer, wake, consent),
    answerAll: async (runId, all, wake, headers) => answerAll(answers, runId, all, wake, checkHeaders(headers)),
    tell: (run, message) => tellRun(telling, run, message),
    waiting: (run) => listWaiting(store, run),
    takeBack: (run, id) => takeBack(store, run, id),
    redact,
    redactor: () => createRedactor(secrets, secretKeys),
    attach: supervisor.attach,
    onLost: supervisor.onLost,
    threadRule: () => ({ closeAfterMs, now: clock.wall() }),

    async recover() {
      const recovered = await adoption.recover()
      idle.watch()
      void settleRecent(store, shutdown, (run) => settleMessages(nextRuns, run)).catch(() => undefined)
      return recovered
    },

    async close(closeGraceMs = 2000, beforeStore) {
      closing.abort()
      await supervisor.close(closeGraceMs)
      await beforeStore?.()
      // Until here, runs in other processes were followed.
      await handles.close()
      await Promise.all([options.registry.mcp?.close(), options.registry.processes?.close()])
      await store.close()
    },
  }
  const handles = createHandles({ store, supervisor, runtime })
  const { handle } = handles

  return runtime
}

/** Runs that a crash has left between their end and the next run of their thread. They are among the last. */
async function settleRecent(store: Store, shutdown: AbortSignal, settle: (run: string) => Promise<void>) {
  for (const { id, status } of await store.runs.list({ limit: mostRecent })) {
    if (shutdown.aborted) return
    if (hasEnded(status)) await settle(id).catch(() => undefined)
  }
}

/** Stops a run in any process. */
interface StopContext {
  store: Store
  supervisor: Pick<Supervisor, 'owns' | 'reconcile'>
  shutdown: AbortSignal
  redact<T>(value: T): T
  /** ms within which an owner in another process must end the run. After that, the run counts as an orphan. */
  patience: number
}

/** Notifies the other processes of a message to a run, instead of reconciling it here. */
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
  await supervisor.reconcile(run, 'hint')
  if (supervisor.owns(run) || (await runs.get(run))?.status !== 'running') return
  // A fleet of several processes finds orphans by itself.
  if (fleet.shared) return
  await fleet.want(run)
  void endOrphan(context, run, row?.lastSeq ?? 0).catch(() => undefined)
}

/** Ends a run whose owner process has died. */
async function endOrphan({ store, supervisor, shutdown, patience }: StopContext, run: string, after: number) {
  const ended = ({ type }: { type: string }) => type === 'run-end' || type === 'suspend'
  await awaitEntry(store.log, run, ended, { after, ms: patience, signal: shutdown })
  const row = await store.runs.get(run)
  if (shutdown.aborted || row === undefined || hasEnded(row.status) || supervisor.owns(run)) return
  await supervisor.reconcile(run, 'orphan')
}

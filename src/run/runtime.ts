/**
 * The runtime owns every run of this process: starts it, wakes it, stops it, ends it truthfully after a crash.
 * A run belongs to the server; a connection is only a cursor into its log.
 */
import type { Entry } from '../part/entry.ts'
import type { ErrorValue, MillraceError } from '../part/error.ts'
import { hasEnded, type Store } from '../part/log.ts'
import { recordable } from '../part/json.ts'
import type { Answer, Part } from '../part/part.ts'
import { createCleaner } from '../part/redact.ts'
import type { CallSettings } from '../part/settings.ts'
import type { BusyPolicy, DisconnectPolicy, HistoryPolicy, Pipeline } from '../pipeline/pipeline.ts'
import { checkRunInput } from './check-run-input.ts'
import { claimTurn } from './claim-turn.ts'
import type { FailEffect } from './fail-run.ts'
import { readView } from './history.ts'
import { allRuns, flatten, threadOf } from './run-rows.ts'
import { endOfRequest, type PostedAnswer } from './inbox.ts'
import type { Wake } from './left-for.ts'
import { createOwners, type Owned } from './owners.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import { readResult, type RunResult } from './run-result.ts'
import { closingError, runExists, unknownAgent, unknownRequest, unknownRun, wrongAnswer } from './runtime-errors.ts'
import { createRunState } from './state.ts'
import { createThreadGate } from './threads.ts'

/** An agent as a runtime holds it. */
export interface Agent {
  id: string
  pipeline: Pipeline
}

/** Where agents come from. `get` finds aliases as well and gives the last good version. */
export interface AgentSource {
  get(id: string): Agent | undefined
  list(): Agent[]
}

/** What a start may say beside agent and input; everything has a default. */
export interface StartOptions {
  threadId?: string
  runId?: string
  protocol?: string
  parentRunId?: string
  /** Ids the client gave. */
  labels?: Record<string, string>
  onBusy?: BusyPolicy
  /** `server`: the input's messages are only the new ones; the thread's record says what came before. Default `client`. */
  history?: HistoryPolicy
  handOver?: boolean
  /** A start with a key that this thread has seen joins that key's run. */
  turnKey?: string
  /** What the request asks of the answering model. */
  settings?: CallSettings
}

/** One run of this runtime. */
export interface Run {
  id: string
  threadId: string
  /** It had begun before it was asked for. */
  joined: boolean
  /** The log from its start, then live, until the run ends. A second reader is a second cursor. */
  parts: AsyncIterable<Entry>
  /** How it ended, or that it is suspended. Never rejects: failure is an outcome. */
  result: Promise<RunResult>
  stop(reason?: string): Promise<void>
  answer(requestId: string, answer: Answer): Promise<Answered>
}

/** `duplicate`: somebody had answered before; `answer` is the one that counts. */
export interface Answered {
  duplicate: boolean
  answer: PostedAnswer
}

/** What starts, wakes and stops runs. Methods reject with a `MillraceError` that has an HTTP `status` where one fits. */
export interface Runtime {
  readonly agents: AgentSource
  readonly store: Store
  /** Starts a run; resolves once its `run-start` is stored. Throws `bad-input` before anything else. In a busy thread it may still wait for its turn. */
  start(agentId: string, input: Record<string, unknown>, options?: StartOptions): Promise<Run>
  open(runId: string): Promise<Run | undefined>
  /** A run by its id, without looking whether it has begun. */
  handle(runId: string, threadId: string): Run
  stop(runId: string, reason?: string): Promise<void>
  /** Fails a run because of an error that nobody awaited, if it is active in this process. */
  fail(runId: string, error: MillraceError): FailEffect
  answer(runId: string, requestId: string, answer: Answer, wake?: Wake): Promise<Answered>
  /** Leaves several answers for a run and wakes it once. Gives, by request, the answers that count. */
  answerAll(runId: string, answers: ReadonlyMap<string, Answer>, wake?: Wake): Promise<Map<string, Answer>>
  /** The same value, deep, without the secrets that this runtime knows: for whatever is printed or kept beside the log. */
  redact<T>(value: T): T
  attach(runId: string, policy: DisconnectPolicy): (how?: { finished?: boolean }) => void
  /**
   * Tells a reader, once, the error that the log cannot tell because the run's store failed; at once when that is known
   * already. Gives back how to stop listening.
   */
  onLost(runId: string, tell: (error: ErrorValue) => void): () => void
  /** Ends, or goes on with, the runs that an earlier process left; call it once, before the first start. */
  recover(): Promise<{ resumed: number; interrupted: number }>
  readonly active: number
  /** Takes no more runs, gives the active ones `graceMs` to end, then ends them as `interrupted`. */
  close(graceMs?: number): Promise<void>
}

export type { FailEffect } from './fail-run.ts'
export type { Wake } from './left-for.ts'
export type { RunResult } from './run-result.ts'

export function createRuntime(options: RuntimeOptions): Runtime {
  const { agents, store, secrets = [] } = options
  const redact = createCleaner(secrets)
  const { newRunId = () => `run_${crypto.randomUUID().replaceAll('-', '')}` } = options
  const { log, runs } = store
  const shutdown = new AbortController()
  const owners = createOwners(options, shutdown.signal)
  const { active, starting, own, stop, wake } = owners
  const gate = createThreadGate({ store, stop, beginning: (run) => starting.get(run) })

  // What waits in the inbox is kept like the log, and told to whoever answers next.
  const leave = (run: string, requestId: string, message: PostedAnswer) =>
    log.post(run, `answer:${requestId}`, redact(recordable(message)))

  const runtime: Runtime = {
    agents,
    store,
    get active() {
      return active.size
    },

    async start(agentId, given, startOptions = {}) {
      if (shutdown.signal.aborted) throw closingError()
      const agent = agents.get(agentId)
      if (agent === undefined) throw unknownAgent(agentId, agents)
      const { protocol = 'library', labels, parentRunId, handOver, turnKey, settings } = startOptions
      let { runId = newRunId() } = startOptions
      if (startOptions.runId !== undefined && (await runs.get(runId)) !== undefined) throw runExists(runId)
      const { pipeline } = agent
      const input = checkRunInput(pipeline, given)
      const announced = runId
      const begins = Promise.withResolvers<void>()
      void begins.promise.catch(() => undefined)
      starting.set(announced, begins.promise)
      try {
        if (turnKey !== undefined) {
          const { run, joined } = await claimTurn({
            store,
            threadId: startOptions.threadId,
            key: `${agent.id}:${turnKey}`,
            run: runId,
            starting,
            announce: (winner) => starting.set(winner, begins.promise),
          })
          if (joined) return handle(run, startOptions.threadId ?? threadOf(run), true)
          runId = run
        }
        const threadId = startOptions.threadId ?? threadOf(runId)
        const policy = pipeline.onBusy ?? startOptions.onBusy ?? 'interrupt'
        const place = startOptions.threadId === undefined ? undefined : await gate.claim(threadId, runId, policy)
        const fromServer = (pipeline.history ?? startOptions.history) === 'server'
        const start: Part = {
          type: 'run-start',
          runId,
          agent: agent.id,
          pipeline: pipeline.text,
          threadId,
          protocol,
          input,
          ...(labels === undefined ? undefined : { labels }),
          ...(parentRunId === undefined ? undefined : { parentRunId }),
          ...(fromServer && place?.previous !== undefined ? { previousRunId: place.previous } : undefined),
          ...(handOver === true ? { handOver } : undefined),
          ...(settings === undefined ? undefined : { settings }),
        }
        if (shutdown.signal.aborted) throw closingError()
        const owned: Owned = { id: runId, threadId, epoch: 1 }
        if (place !== undefined) owned.turn = place.wait
        await own(owned, createRunState(), pipeline, [start])
        begins.resolve()
        return handle(runId, threadId)
      } catch (error) {
        begins.reject(error)
        throw error
      } finally {
        starting.delete(announced)
        starting.delete(runId)
      }
    },

    async open(runId) {
      const row = await runs.get(runId)
      return row === undefined ? undefined : handle(runId, row.threadId)
    },

    handle,
    stop,
    fail: owners.fail,

    async answer(runId, requestId, answer, how = {}) {
      const view = await readView(store, runId)
      if (view === undefined) throw unknownRun(runId)
      const request = view.requests.find((each) => each.requestId === requestId)
      if (request === undefined) {
        // Not open: answered before, or never asked.
        const before = await endOfRequest(store, runId, requestId)
        if (before === undefined) throw unknownRequest(runId, requestId)
        return { duplicate: true, answer: before }
      }
      if (request.kind !== answer.kind) throw wrongAnswer(request)
      const { first, message } = await leave(runId, requestId, { answer, protocol: 'api', ...how })
      await wake(runId)
      const row = await runs.get(runId)
      if (first && row !== undefined && hasEnded(row.status)) {
        // The run may have ended while the answer was on its way: then the request was closed, not answered.
        const before = await endOfRequest(store, runId, requestId)
        if (before !== undefined && 'closed' in before) return { duplicate: true, answer: before }
      }
      return { duplicate: !first, answer: message as PostedAnswer }
    },

    async answerAll(runId, answers, how = {}) {
      const counted = new Map<string, Answer>()
      for (const [requestId, answer] of answers) {
        const { message } = await leave(runId, requestId, { answer, protocol: 'api', ...how })
        const winner = message as PostedAnswer
        if ('answer' in winner) counted.set(requestId, winner.answer)
      }
      await wake(runId)
      return counted
    },

    redact,
    attach: owners.attach,
    onLost: owners.onLost,

    async recover() {
      const counts = { resumed: 0, interrupted: 0 }
      // One run's failure must not stop the others, nor the start.
      for (const run of await allRuns(store, 'running')) {
        try {
          const became = await owners.adopt(run.id, (row) => gate.rejoin(row.threadId, run.id))
          if (became !== undefined) counts[became]++
        } catch {
          void owners.closeLost(run)
        }
      }
      for (const { id } of await allRuns(store, 'suspended')) await owners.attend(id).catch(() => undefined)
      return counts
    },

    async close(closeGraceMs = 2000) {
      shutdown.abort()
      await owners.close(closeGraceMs)
      await options.registry.mcp?.close()
      await store.close()
    },
  }

  function handle(id: string, threadId: string, joined = false): Run {
    // Asked for now: a store that forgets old runs keeps this one for who holds it.
    const live = log.read(id, 0, shutdown.signal)
    const stored = log.read(id)
    let result: Promise<RunResult> | undefined
    return {
      id,
      threadId,
      joined,
      parts: { [Symbol.asyncIterator]: () => flatten(live) },
      get result() {
        // A run that was answered, or stopped, while it suspended goes on or ends by itself.
        return (result ??= owners.settled(id).then(() => readResult(id, stored)))
      },
      stop: (reason) => stop(id, reason),
      answer: (requestId, answer) => runtime.answer(id, requestId, answer, { protocol: 'library' }),
    }
  }

  return runtime
}

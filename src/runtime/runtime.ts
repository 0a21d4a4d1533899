/**
 * The runtime owns all runs of this process: it starts, resumes and stops them, and recovers or ends those that a crash left.
 * A run belongs to the server. A connection only reads its log.
 */
import { toTraceparent } from '../part/traceparent.ts'
import { compact } from '../part/compact.ts'
import type { Entry } from '../part/entry.ts'
import type { ErrorValue, MillraceError } from '../part/error.ts'
import { hasEnded, type Store } from '../part/log.ts'
import { recordable } from '../part/json.ts'
import type { Answer, Part } from '../part/part.ts'
import { createCleaner } from '../fold/redact.ts'
import type { CallSettings } from '../part/settings.ts'
import type { BusyPolicy, DisconnectPolicy, HistoryPolicy, Pipeline } from '../pipeline/pipeline.ts'
import { checkAnswer } from './check-answer.ts'
import { checkRunInput } from './check-run-input.ts'
import { claimTurn } from './claim-turn.ts'
import type { FailEffect } from './fail-run.ts'
import { readKept } from '../fold/read-view.ts'
import { allRuns, flatten, threadOf } from './run-rows.ts'
import type { PostedAnswer } from '../engine/inbox.ts'
import { endOfRequest } from './answer-to.ts'
import type { Wake } from './left-for.ts'
import { createOwners, type Owned } from './owners.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import { readResult, type RunResult } from './run-result.ts'
import { closingError, runExists, unknownAgent, unknownRequest, unknownRun } from './runtime-errors.ts'
import { createRunState } from '../engine/state.ts'
import { createThreadGate } from './threads.ts'

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
  /** The caller's `traceparent` (W3C Trace Context), which the run's start records. An invalid one is ignored. */
  traceparent?: string | null | undefined
  onBusy?: BusyPolicy
  /** `server`: the input has only the new messages, and the thread's runs have the earlier ones. Default `client`. */
  history?: HistoryPolicy
  handOver?: boolean
  /** If the thread already has a run with this key, the start joins that run. */
  turnKey?: string
  /** Settings of the request for the answering model. */
  settings?: CallSettings
}

/** A run of this runtime. */
export interface Run {
  id: string
  threadId: string
  /** The run existed before the call that returned it. */
  joined: boolean
  /** The log from its start, then live, until the run ends. You can iterate it several times. */
  parts: AsyncIterable<Entry>
  /** The outcome, once the run has ended or is suspended. Never rejects: failure is an outcome. */
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
  readonly store: Store
  /**
   * Starts a run and resolves once its `run-start` is stored. In a busy thread the run may still wait for its turn. Rejects with
   * `bad-input` before anything is stored.
   */
  start(agentId: string, input: Record<string, unknown>, options?: StartOptions): Promise<Run>
  open(runId: string): Promise<Run | undefined>
  /** A run by its id, without a check that it exists. */
  handle(runId: string, threadId: string): Run
  stop(runId: string, reason?: string): Promise<void>
  /** Fails a run because of an error that nobody awaited, if it is active in this process. */
  fail(runId: string, error: MillraceError): FailEffect
  answer(runId: string, requestId: string, answer: Answer, wake?: Wake): Promise<Answered>
  /** Posts several answers to a run and resumes it once. Resolves with the answers that count, by request id. */
  answerAll(runId: string, answers: ReadonlyMap<string, Answer>, wake?: Wake): Promise<Map<string, Answer>>
  /** A deep copy without this runtime's secrets, for values that are printed or stored outside the log. */
  redact<T>(value: T): T
  attach(runId: string, policy: DisconnectPolicy): (how?: { finished?: boolean }) => void
  /**
   * Calls `tell` once if the store fails, so that the log cannot have the run's error; at once if the store has failed already.
   * Returns a function that removes the listener.
   */
  onLost(runId: string, tell: (error: ErrorValue) => void): () => void
  /** Continues or ends the runs that an earlier process left. Call it once, before the first start. */
  recover(): Promise<{ resumed: number; interrupted: number }>
  readonly active: number
  /** Accepts no more runs, waits up to `graceMs` ms for active ones, then ends them as `interrupted`. Default 2000. */
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

  // Inbox messages are stored like the log, and returned to clients that answer later.
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
          ...compact({ labels, traceparent: toTraceparent(startOptions.traceparent) }),
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
      const kept = await readKept(store, runId)
      if (kept === undefined) throw unknownRun(runId)
      const request = kept.requests.find((each) => each.requestId === requestId)
      if (request === undefined) {
        // Not open: it was answered before or never existed.
        const before = await endOfRequest(store, kept, requestId)
        if (before === undefined) throw unknownRequest(runId, requestId)
        return { duplicate: true, answer: before }
      }
      checkAnswer(request, answer)
      const { first, message } = await leave(runId, requestId, { answer, protocol: 'api', ...how })
      await wake(runId)
      const row = await runs.get(runId)
      if (first && row !== undefined && hasEnded(row.status)) {
        // If the run ended in the meantime, the request was closed and not answered.
        const now = await readKept(store, runId)
        const before = now && (await endOfRequest(store, now, requestId))
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
      // The failure of one run must not prevent the others or the start.
      for (const run of await allRuns(store, 'running')) {
        try {
          const became = await owners.adopt(run.id, (row) => gate.rejoin(row.threadId, run.id))
          if (became !== undefined) counts[became]++
        } catch {
          // It may have been claimed before the failure.
          void owners.closeLost({ id: run.id, epoch: run.epoch + 1 })
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
    // Created now, because a store that drops old runs keeps those with a reader.
    const live = log.read(id, { signal: shutdown.signal })
    const stored = log.read(id)
    let result: Promise<RunResult> | undefined
    return {
      id,
      threadId,
      joined,
      parts: { [Symbol.asyncIterator]: () => flatten(live) },
      get result() {
        // If the run was answered or stopped while it was being suspended, this waits for what follows.
        return (result ??= owners.settled(id).then(() => readResult(store, id, stored)))
      },
      stop: (reason) => stop(id, reason),
      answer: (requestId, answer) => runtime.answer(id, requestId, answer, { protocol: 'library' }),
    }
  }

  return runtime
}

/**
 * Manages the owners of runs in this process. A run has one owner at a time, and only the owner writes its log. For each run,
 * operations that create an owner or write the end of a run without owner happen one at a time.
 */
import { MillraceError, toErrorValue, toMillraceError, type ErrorValue } from '../part/error.ts'
import { hasEnded, type RunRow } from '../part/log.ts'
import type { Part } from '../part/part.ts'
import { createCleaner } from '../fold/redact.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { unattributed } from '../engine/attribute.ts'
import { closeLost } from './close-lost.ts'
import { createDeadlines } from './deadlines.ts'
import { failRun } from './fail-run.ts'
import { messagesOf } from '../part/message.ts'
import { conversation, historyLimit } from './conversation.ts'
import { leftFor } from './left-for.ts'
import { createPresence } from './presence.ts'
import { mostRecoveries } from '../engine/recovery.ts'
import { systemClock } from '../engine/run-clock.ts'
import { notify } from './run-event.ts'
import { execute, type RunnerEnd, type RunnerOptions } from '../engine/runner.ts'
import { lostError, unknownRun } from './runtime-errors.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import { foldState, type RunState } from '../engine/state.ts'
import { readStored } from '../engine/stored-pipeline.ts'
import { writeEnd, type RunEnding } from '../engine/write-end.ts'

/** A run that is about to get an owner. `turn` settles when the run may start in its thread. */
export interface Owned {
  id: string
  threadId: string
  epoch: number
  turn?: (signal: AbortSignal) => Promise<void>
}

const refused = 'this version no longer accepts the pipeline in its log.'
const triedBefore = `It was recovered ${mostRecoveries} times without progress and is not tried again.`

interface Active {
  state: RunState
  controller: AbortController
  /** Settles when the last entry is stored and the run has no owner any more; `done`, when what follows from that is done. */
  left: Promise<unknown>
  done: Promise<void>
  /** Called when the store fails. */
  listeners: Set<(error: ErrorValue) => void>
  recover: boolean
}

export function createOwners(options: RuntimeOptions, shutdown: AbortSignal) {
  const { agents, registry, store, env = {}, secrets = [], clock = systemClock, graceMs = 300 } = options
  const { requestDeadlineMs = 24 * 3600_000, defaultTimeouts = {}, onRun, attribute = unattributed } = options
  const { log, runs } = store
  const active = new Map<string, Active>()
  /** Runs without entries. Each settles when it has one, or when it will never have one. */
  const starting = new Map<string, Promise<void>>()
  const changing = new Map<string, Promise<void>>()
  /** Runs that have an owner or just had one. Each settles when the work after its owner has left is done. */
  const settling = new Map<string, Promise<void>>()
  /** Runs whose store failed and whose log has no end yet. */
  const losses = new Map<string, ErrorValue>()

  const ending = { runs, losses, shutdown, end }

  const presence = createPresence((run, reason) => {
    const open = active.get(run)?.state.open
    // A complete answer is not interrupted, and a suspended run keeps waiting for its client.
    if (open === undefined || open.answered || open.suspended) return
    void stop(run, reason).catch(() => undefined)
  })
  const deadlines = createDeadlines(clock, (run, requestId) => {
    void log
      .post(run, `answer:${requestId}`, { closed: 'deadline' })
      .then(() => wake(run))
      .catch(() => undefined)
  })

  /**
   * Runs a pipeline to its end or suspension, as the run's only owner. Resolves once its first entry is stored. Rejects if the
   * store fails before that.
   */
  function own(row: Owned, state: RunState, pipeline: Pipeline, first: Part[]): Promise<void> {
    const begun = Promise.withResolvers<void>()
    // Not every caller awaits it.
    begun.promise.catch(() => undefined)
    const controller = new AbortController()
    const listeners: Active['listeners'] = new Set()
    const handOver = first.some((part) => part.type === 'run-start' && part.handOver) || state.start?.handOver === true
    const execution: RunnerOptions = {
      log,
      runs,
      agent: (id) => agents.get(id)?.pipeline,
      turn: row.turn ?? (async () => undefined),
      history: async () => {
        const previous = state.start?.previousRunId
        if (previous === undefined) return { messages: [], cut: false }
        const following = messagesOf(state.input)
        return conversation(store, row.threadId, previous, { following, limit: historyLimit })
      },
      registry,
      pipeline,
      runId: row.id,
      threadId: row.threadId,
      epoch: row.epoch,
      state,
      first,
      handOver: handOver || !store.durable,
      env,
      secrets,
      controller,
      clock,
      graceMs,
      defaultTimeouts,
      requestDeadlineMs,
      attribute,
      onStored: begun.resolve,
    }
    const work = attribute({ run: row.id }, () => execute(execution)).catch((error: unknown): RunnerEnd => {
      // The store cannot be read, or we have a bug. Stop everything that still works for this run.
      controller.abort(error)
      return { type: 'lost', error }
    })
    const left = work.then((end) => {
      active.delete(row.id)
      presence.forget(row.id)
      if (end.type !== 'lost') {
        if (end.type === 'suspended' || state.end !== undefined) notify(onRun, state)
        return end
      }
      const error = lostError(end.error)
      losses.set(row.id, error)
      begun.reject(new MillraceError(error.code, error.message, { status: 503 }))
      for (const tell of listeners) tell(error)
      // A failing store is reported elsewhere, and the end of the run is recorded later.
      if (error.code !== 'store-failed') notify(onRun, state, toErrorValue(end.error))
      void closeLost(ending, row)
      return end
    })
    const done: Promise<void> = left.then(async ({ type }) => {
      // If this fails, the next process does it.
      if (type === 'suspended') await afterSuspend(row.id, state, state.lastTimestamp).catch(() => undefined)
      else deadlines.clear(row.id)
      if (settling.get(row.id) === done) settling.delete(row.id)
    })
    settling.set(row.id, done)
    active.set(row.id, { state, controller, left, done, listeners, recover: pipeline.recover })
    return begun.promise
  }

  /** Calls `tell` when the store fails, or at once if it has. Returns a function that removes it. */
  function onLost(run: string, tell: (error: ErrorValue) => void): () => void {
    const known = losses.get(run)
    if (known !== undefined) tell(known)
    const listeners = active.get(run)?.listeners.add(tell)
    return () => void listeners?.delete(tell)
  }

  /** Runs tasks that create an owner or write a run's end, one at a time for each run. */
  function alone<T>(run: string, task: () => Promise<T>): Promise<T> {
    const result = (changing.get(run) ?? Promise.resolve()).then(task)
    const settled = result.then(
      () => undefined,
      () => undefined,
    )
    changing.set(run, settled)
    void settled.then(() => changing.get(run) === settled && changing.delete(run))
    return result
  }

  async function afterSuspend(run: string, { open }: RunState, now: number): Promise<void> {
    deadlines.keep(run, open.requests, now)
    // Nothing else would notice an answer or a stop that was posted while the run was being suspended.
    await wake(run)
  }

  /** Resumes or stops a suspended run if its inbox has answers or a stop. */
  function wake(run: string): Promise<void> {
    return alone(run, async () => {
      const row = await runs.get(run)
      // While the server shuts down, inbox messages wait for the next start.
      if (row?.status !== 'suspended' || shutdown.aborted) return
      // The suspension is visible a moment before its owner has left.
      await active.get(run)?.left
      const state = await foldState(log, run)
      const { stop: reason, how } = await leftFor(log, run, state)
      if (reason !== undefined) return close(row, state, { code: 'aborted', message: reason, outcome: 'aborted' })
      if (state.open.requests.size === 0) {
        // A crash cut off its end, so nothing could resume it any more.
        return close(row, state, { code: 'interrupted', message: 'The server stopped.', outcome: 'unavailable' })
      }
      if (how === undefined || shutdown.aborted) return
      const pipeline = readStored(state.start?.pipeline)
      if (pipeline === undefined) {
        const message = `The run cannot continue: ${refused}`
        return close(row, state, { code: 'interrupted', message, outcome: 'unavailable' })
      }
      if (!(await log.claim(run, row.epoch))) return
      await own({ ...row, epoch: row.epoch + 1 }, state, pipeline, [{ type: 'resume', protocol: 'api', ...how }])
    })
  }

  /** Recovers or ends a run that an earlier process left running. `rejoin` restores its position in its thread. */
  function adopt(
    run: string,
    rejoin: (row: RunRow) => Promise<Owned['turn']>,
  ): Promise<'resumed' | 'interrupted' | undefined> {
    return alone(run, async () => {
      const row = await runs.get(run)
      if (row?.status !== 'running' || active.has(run)) return undefined
      const state = await foldState(log, run)
      let message = 'The server stopped while the run was active.'
      try {
        const pipeline = readStored(state.start?.pipeline)
        if (pipeline === undefined) message += ` It cannot continue: ${refused}`
        else if (pipeline.recover && state.recoveries >= mostRecoveries) message += ` ${triedBefore}`
        else if (pipeline.recover) {
          const turn = await rejoin(row)
          if (shutdown.aborted || !(await log.claim(run, row.epoch))) return undefined
          void own({ ...row, epoch: row.epoch + 1, turn }, state, pipeline, [])
          return 'resumed'
        }
      } catch (error) {
        // A run that cannot continue must not prevent the server from starting.
        message += ` It cannot continue: ${toMillraceError(error).message}`
      }
      await close(row, state, { code: 'interrupted', message, outcome: 'unavailable' })
      return 'interrupted'
    })
  }

  /** Ends a run without owner, unless it got one or was ended in the meantime. `owned`: the epoch of this process's last owner. */
  function end(run: string, ending: RunEnding, owned?: number): Promise<void> {
    return alone(run, async () => {
      const row = await runs.get(run)
      if (row === undefined || hasEnded(row.status) || active.has(run)) return
      await close(row, await foldState(log, run), ending, owned)
    })
  }

  async function close(row: RunRow, state: RunState, ending: RunEnding, owned?: number): Promise<void> {
    const owns = row.epoch === owned
    if (!owns && !(await log.claim(row.id, row.epoch))) return
    const epoch = owns ? row.epoch : row.epoch + 1
    await writeEnd({ log, runs, registry, clock, graceMs, secrets }, { id: row.id, epoch }, state, ending)
    deadlines.clear(row.id)
    notify(onRun, state)
  }

  async function stop(run: string, reason = 'Stopped.'): Promise<void> {
    const row = await runs.get(run)
    if (row === undefined && !active.has(run) && !starting.has(run)) throw unknownRun(run)
    if (row !== undefined && hasEnded(row.status)) return
    await log.post(run, 'stop', { reason: createCleaner(secrets)(reason) })
    // An owner, even one that is about to start, reads it from its inbox.
    if (active.has(run) || starting.has(run)) return
    await end(run, { code: 'aborted', message: reason, outcome: 'aborted' })
  }

  return {
    active: active as ReadonlyMap<string, Active>,
    starting,
    own,
    wake,
    adopt,
    stop,
    fail: (run: string, error: MillraceError) => failRun(active.get(run), error),
    closeLost: (row: Pick<RunRow, 'id' | 'epoch'>) => closeLost(ending, row),
    attach: presence.attach,

    /** Resolves when the run has no owner and no inbox message is about to resume or end it. */
    async settled(run: string): Promise<void> {
      while (settling.has(run)) await settling.get(run)
    },

    onLost,

    /** Watches a suspended run of an earlier process until its answer or its deadline. */
    attend: async (run: string) => afterSuspend(run, await foldState(log, run), clock.wall()),

    /** Waits for active runs, then ends them. */
    async close(closeGraceMs: number): Promise<void> {
      deadlines.close()
      const work = Promise.all([...active.values()].map(({ done }) => done))
      let timer: ReturnType<typeof setTimeout> | undefined
      await Promise.race([work, new Promise((resolve) => (timer = setTimeout(resolve, closeGraceMs)))])
      clearTimeout(timer)
      // While this waits, new owners may appear, so it repeats until none is left.
      while (active.size + settling.size + changing.size > 0) {
        for (const { controller, recover } of active.values()) {
          // A run with `recover` continues after the restart, so its log gets no end.
          const code = recover ? 'abandoned' : 'interrupted'
          controller.abort(new MillraceError(code, 'The server is shutting down.'))
        }
        await Promise.all([...settling.values(), ...changing.values()])
      }
    },
  }
}

/**
 * Who owns which run in this process. A run has one owner at a time, who alone writes its log; what makes an owner for a
 * run that has none, or writes the end of such a run, happens one at a time for each run.
 */
import { MillraceError, toErrorValue, toMillraceError, type ErrorValue } from '../part/error.ts'
import { hasEnded, type RunRow } from '../part/log.ts'
import type { Part } from '../part/part.ts'
import { createCleaner } from '../part/redact.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { unattributed } from './attribute.ts'
import { closeLost } from './close-lost.ts'
import { createDeadlines } from './deadlines.ts'
import { failRun } from './fail-run.ts'
import { conversation, messagesOf } from './history.ts'
import { leftFor } from './left-for.ts'
import { createPresence } from './presence.ts'
import { mostRecoveries } from './recovery.ts'
import { systemClock } from './run-clock.ts'
import { notify } from './run-event.ts'
import { execute, type RunnerEnd, type RunnerOptions } from './runner.ts'
import { lostError, unknownRun } from './runtime-errors.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import { foldState, type RunState } from './state.ts'
import { readStored } from './stored-pipeline.ts'
import { writeEnd, type RunEnding } from './write-end.ts'

/** A run about to get an owner; `turn` settles when its turn in its thread has come. */
export interface Owned {
  id: string
  threadId: string
  epoch: number
  turn?: (signal: AbortSignal) => Promise<void>
}

const refused = 'the pipeline that its log holds is not taken any more.'
const triedBefore = `It went on ${mostRecoveries} times before, got nowhere, and is not tried again.`

interface Active {
  state: RunState
  controller: AbortController
  /** Its last entry is stored and it owns the run no more; `done`: what follows from that is done too. */
  left: Promise<unknown>
  done: Promise<void>
  /** Who is to be told when its store fails. */
  listeners: Set<(error: ErrorValue) => void>
  recover: boolean
}

export function createOwners(options: RuntimeOptions, shutdown: AbortSignal) {
  const { agents, registry, store, env = {}, secrets = [], clock = systemClock, graceMs = 300 } = options
  const { requestDeadlineMs = 24 * 3600_000, defaultTimeouts = {}, onRun, attribute = unattributed } = options
  const { log, runs } = store
  const active = new Map<string, Active>()
  /** Runs without an entry yet; each settles when it has one, or when it will never have one. */
  const starting = new Map<string, Promise<void>>()
  const changing = new Map<string, Promise<void>>()
  /** Runs that are owned, or were until a moment ago: each settles when what follows from its owner's leaving is done. */
  const settling = new Map<string, Promise<void>>()
  /** Runs whose store failed and whose log has no end yet. */
  const losses = new Map<string, ErrorValue>()

  const ending = { runs, losses, shutdown, end }

  const presence = createPresence((run, reason) => {
    const open = active.get(run)?.state.open
    // An answer that is complete was not left, and one that waits for its client waits for as long as it takes.
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
   * Runs a pipeline to its end or suspension, as the run's only owner. Resolves once its first entry is stored; rejects when
   * the store refused it.
   */
  function own(row: Owned, state: RunState, pipeline: Pipeline, first: Part[]): Promise<void> {
    const begun = Promise.withResolvers<void>()
    // Not everybody waits for it.
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
        return previous === undefined ? [] : conversation(store, row.threadId, previous, messagesOf(state.input))
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
      // Its store cannot be read, or a fault of ours: what is still under way for it speaks to nobody.
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
      // A store that fails is known to whoever watches it, and the run's own end is recorded later.
      if (error.code !== 'store-failed') notify(onRun, state, toErrorValue(end.error))
      void closeLost(ending, row)
      return end
    })
    const done: Promise<void> = left.then(async ({ type }) => {
      // What is left to do then, the next process does.
      if (type === 'suspended') await afterSuspend(row.id, state, state.lastTimestamp).catch(() => undefined)
      else deadlines.clear(row.id)
      if (settling.get(row.id) === done) settling.delete(row.id)
    })
    settling.set(row.id, done)
    active.set(row.id, { state, controller, left, done, listeners, recover: pipeline.recover })
    return begun.promise
  }

  /** Tells once, at once when it is known already. Gives back how to leave: a run may outlive thousands of readers. */
  function onLost(run: string, tell: (error: ErrorValue) => void): () => void {
    const known = losses.get(run)
    if (known !== undefined) tell(known)
    const listeners = active.get(run)?.listeners.add(tell)
    return () => void listeners?.delete(tell)
  }

  /** One at a time for each run: whatever makes an owner for a run that has none, or writes its end. */
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
    // An answer, or a stop, that was posted while the run was about to suspend has nobody else to notice it.
    await wake(run)
  }

  /** A suspended run goes on with what was left for it: answers and what came with them, or a stop. */
  function wake(run: string): Promise<void> {
    return alone(run, async () => {
      const row = await runs.get(run)
      // While the server closes, what was left for a run waits for the next start.
      if (row?.status !== 'suspended' || shutdown.aborted) return
      // The suspension can be read a moment before its owner has left.
      await active.get(run)?.left
      const state = await foldState(log, run)
      const { stop: reason, how } = await leftFor(log, run, state)
      if (reason !== undefined) return close(row, state, { code: 'aborted', message: reason, outcome: 'aborted' })
      if (state.open.requests.size === 0) {
        // A crash cut off its end: nobody could wake it any more.
        return close(row, state, { code: 'interrupted', message: 'The server stopped.', outcome: 'unavailable' })
      }
      if (how === undefined || shutdown.aborted) return
      const pipeline = readStored(state.start?.pipeline)
      if (pipeline === undefined) {
        const message = `The run cannot go on: ${refused}`
        return close(row, state, { code: 'interrupted', message, outcome: 'unavailable' })
      }
      await own({ ...row, epoch: row.epoch + 1 }, state, pipeline, [{ type: 'resume', protocol: 'api', ...how }])
    })
  }

  /** What a run that an earlier process left running comes to. `rejoin`: its place in its thread. */
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
        if (pipeline === undefined) message += ` It cannot go on: ${refused}`
        else if (pipeline.recover && state.recoveries >= mostRecoveries) message += ` ${triedBefore}`
        else if (pipeline.recover) {
          const turn = await rejoin(row)
          if (shutdown.aborted) return undefined
          void own({ ...row, epoch: row.epoch + 1, turn }, state, pipeline, [])
          return 'resumed'
        }
      } catch (error) {
        // One run that cannot go on must not keep the server from starting.
        message += ` It cannot go on: ${toMillraceError(error).message}`
      }
      await close(row, state, { code: 'interrupted', message, outcome: 'unavailable' })
      return 'interrupted'
    })
  }

  /** Ends a run that has no owner, unless it got one or was ended meanwhile. */
  function end(run: string, ending: RunEnding): Promise<void> {
    return alone(run, async () => {
      const row = await runs.get(run)
      if (row === undefined || hasEnded(row.status) || active.has(run)) return
      await close(row, await foldState(log, run), ending)
    })
  }

  async function close(row: RunRow, state: RunState, ending: RunEnding): Promise<void> {
    await writeEnd({ log, registry, clock, graceMs, secrets }, row, state, ending)
    deadlines.clear(row.id)
    notify(onRun, state)
  }

  async function stop(run: string, reason = 'Stopped.'): Promise<void> {
    const row = await runs.get(run)
    if (row === undefined && !active.has(run) && !starting.has(run)) throw unknownRun(run)
    if (row !== undefined && hasEnded(row.status)) return
    await log.post(run, 'stop', { reason: createCleaner(secrets)(reason) })
    // An owner, also one that is about to begin, reads it from its inbox.
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

    /** Resolves when the run has no owner and nothing that was left for it is about to give it one, or to end it. */
    async settled(run: string): Promise<void> {
      while (settling.has(run)) await settling.get(run)
    },

    onLost,

    /** A suspended run that an earlier process left: watched until its answer or its deadline comes. */
    attend: async (run: string) => afterSuspend(run, await foldState(log, run), clock.wall()),

    /** Gives the active runs their time, then ends them. */
    async close(closeGraceMs: number): Promise<void> {
      deadlines.close()
      const work = Promise.all([...active.values()].map(({ done }) => done))
      let timer: ReturnType<typeof setTimeout> | undefined
      await Promise.race([work, new Promise((resolve) => (timer = setTimeout(resolve, closeGraceMs)))])
      clearTimeout(timer)
      // What is about to make an owner, or to write an end, may do so while the others are waited for.
      while (active.size + settling.size + changing.size > 0) {
        for (const { controller, recover } of active.values()) {
          // A run that may go on after a crash may go on after a restart: its log is left as it stands.
          const code = recover ? 'abandoned' : 'interrupted'
          controller.abort(new MillraceError(code, 'The server is shutting down.'))
        }
        await Promise.all([...settling.values(), ...changing.values()])
      }
    },
  }
}

/**
 * Supervises the runs of this process. `lifecycle.ts` decides about a run; this performs the effects. Only the process that claimed a run in the
 * store writes its log.
 */
import type { FailEffect } from './runtime.ts'
import { messageOf, MillraceError, type ErrorValue, toErrorValue } from '../part/error.ts'
import { timeOf } from '../part/log.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import { pause } from '../async/pause.ts'
import type { McpHeaders } from '../tools/mcp/own-headers.ts'
import type { ActiveRuns } from './active-runs.ts'
import { createAnnouncements, type Announcements } from './announcements.ts'
import { type Looked, type Rejoin, claimRun, type Owned } from './claim-run.ts'
import type { ForkPlan } from './fork-run.ts'
import { attachReader, closeReaders } from './disconnect-policy.ts'
import { closeDue, dueOf, firstDue } from './pending-answers.ts'
import { isBusy, leaseOf, type Effect, type ClaimReason } from './lifecycle.ts'
import { createPresence } from './presence.ts'
import { type TimedOptions, notify } from './runtime-options.ts'
import { createSlots, type Supervised, type Slots } from './slots.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { RunnerEnd } from '../engine/runner.ts'
import type { NextRun } from '../engine/steering.ts'
import type { RunStart } from '../part/part.ts'
import type { RunState } from '../engine/state.ts'
import { cancelTasks } from '../engine/mcp-task.ts'
import { writeEnd, type RunEnding } from '../engine/write-end.ts'
import { createCanRun } from './can-run.ts'
import { startExecution } from './execution.ts'
import { lostError } from './runtime-errors.ts'
import { noteCalls } from './turns-by-calls.ts'

export interface SupervisorContext {
  options: TimedOptions
  activeRuns: ActiveRuns
  shutdown: AbortSignal
  rejoin: Rejoin
  /** The policy of its readers requests a stop. */
  stop(run: string, reason: string): Promise<void>
  newRunId(): string
  /** Starts a run with messages for another one, which ends. */
  startNext(before: RunStart, next: NextRun): Promise<void>
  /** Starts the runs of messages that an ended run has left. */
  settleMessages(run: string): Promise<void>
  /** Called when a run here has a deadline, to subscribe to the fleet. */
  watch(): void
}

export interface Supervisor extends Announcements {
  /** The number of runs that are active here. */
  readonly active: number
  /** Checks whether a run needs an owner, and claims it. Resolves when the result is stored. */
  reconcile(id: string, why: 'hint' | 'orphan'): Promise<Looked | undefined>
  /** Continues a fork, as its owner; without a plan it waits for replies. Resolves when the result is stored. */
  resumeFork(id: string, plan: ForkPlan | undefined): Promise<void>
  /** Whether this process owns a run, is about to start it, or will end it when the store works again. */
  owns(id: string): boolean
  /** Whether this process owns the run or saw its suspension. */
  knows(id: string): boolean
  /** Resolves when this process does not work on the run, and no message is about to resume or end it. */
  rested(id: string): Promise<void>
  storeError(id: string): ErrorValue | undefined
  /** Stores a request's headers for MCP servers. Those for the same server are replaced. */
  keepHeaders(id: string, headers: McpHeaders): void
  headersOf(id: string): McpHeaders | undefined
  /** Calls `listener` when the store fails, or at once if it has. Returns a function that removes it. */
  onLost(id: string, listener: (error: ErrorValue) => void): () => void
  /** Fails a run because of an error that nobody awaited. */
  fail(id: string, error: MillraceError): FailEffect
  attach(id: string, policy: DisconnectPolicy): (how?: { finished?: boolean }) => void
  /** Waits for active runs, then ends them. */
  close(closeGraceMs: number): Promise<void>
}

export function createSupervisor(context: SupervisorContext): Supervisor {
  const { options, activeRuns, shutdown, rejoin, stop, watch } = context
  const { store, clock } = options
  const { log, runs, fleet } = store
  const slots = createSlots(perform, () => shutdown.aborted)
  const { send } = slots
  const { newRunId, startNext, settleMessages } = context
  const work = createWork({ options, activeRuns, send, rejoin, want, newRunId, startNext, settleMessages })
  const presence = createPresence({ store, clock, shutdown, all: slots.all, stop })

  function perform(run: Supervised, effect: Effect): void {
    switch (effect.type) {
      case 'claim':
        run.claim = work.claim(run, effect.reason, effect.epoch)
        // Not every caller awaits it, and the slot tries again.
        run.claim.catch(() => undefined)
        break
      case 'execute':
        work.execute(run, run.owned!)
        if (shutdown.aborted) handOver(run)
        break
      case 'end':
        if (run.owned?.work.type === 'end') run.ending = work.end(run, run.owned, run.owned.work.ending)
        run.ending?.catch(() => undefined)
        break
      case 'abort':
        run.execution?.controller.abort(effect.reason === 'failed' ? run.failure : shutDown(run.execution.recover))
        break
      case 'close-due':
        if (run.due !== undefined) {
          void closeDue(log, run.id, run.due, clock).then(
            (next) => want(run.id, next),
            () => undefined,
          )
        }
        break
      case 'want':
        want(run.id, effect.at, run.seen)
        break
      case 'retry':
        void pause(effect.delay, shutdown, { background: true }).then(() => send(run, { type: 'retry' }))
        break
      case 'report-loss': {
        const listeners = run.lossListeners
        run.lossListeners = undefined
        for (const listener of listeners ?? []) listener(run.loss!)
        break
      }
      case 'rest':
        run.rested?.resolve()
        run.rested = undefined
        run.claim = undefined
    }
  }

  function want(id: string, at?: number, seen?: number): void {
    if (at === Infinity) return
    if (at !== undefined) watch()
    // If this fails, the next start finds the run by its row.
    const moment = at === undefined ? undefined : timeOf(store) + at - clock.steady()
    void fleet.want(id, moment, seen).catch(() => undefined)
  }

  /** Releases an active run to another process. Without one, it continues for as long as this process waits. */
  function handOver({ execution }: Supervised): void {
    if (fleet.shared) execution?.leave()
  }

  async function stopUnread({ id, execution }: Supervised, reason: string): Promise<void> {
    // The shutdown disconnected the readers. The next owner waits for them.
    if (fleet.shared && shutdown.aborted) return
    const open = execution?.state.open
    // A complete answer is not interrupted, and a suspended run keeps waiting for its client.
    if (open === undefined ? (await runs.get(id))?.status !== 'running' : open.answered || open.suspended) return
    if (!(await fleet.attended(id))) await stop(id, reason)
  }

  async function reconcileNow(run: Supervised, type: 'hint' | 'orphan'): Promise<Looked | undefined> {
    send(run, { type })
    let looked: Looked | undefined
    // A hint during the claim leads to another claim.
    for (let last; run.claim !== undefined && run.claim !== last;) looked = await (last = run.claim)
    return looked
  }

  const allRested = () =>
    Promise.all(slots.all().flatMap(({ rested }) => (rested === undefined ? [] : [rested.promise])))

  return {
    ...createAnnouncements(slots),

    get active() {
      return slots.all().filter(({ execution }) => execution !== undefined).length
    },

    reconcile: (id, type) => reconcileNow(slots.of(id), type),

    async resumeFork(id, plan) {
      const run = slots.of(id)
      // The same fork was requested twice at once.
      if (run.slot.state !== 'idle') return void (await run.claim)
      run.plan = plan
      await reconcileNow(run, plan === undefined ? 'hint' : 'orphan')
    },

    owns(id) {
      const slot = slots.get(id)?.slot
      return slot?.state === 'queued' || slot?.state === 'lost' || (slot !== undefined && leaseOf(slot) !== undefined)
    },

    knows: (id) => slots.get(id) !== undefined,

    async rested(id) {
      for (let run = slots.get(id); run?.rested !== undefined; run = slots.get(id)) await run.rested.promise
    },

    storeError: (id) => slots.get(id)?.loss,

    keepHeaders(id, headers) {
      const run = slots.of(id)
      run.mcpHeaders = { ...run.mcpHeaders, ...headers }
    },

    headersOf: (id) => slots.get(id)?.mcpHeaders,

    onLost(id, listener) {
      const run = slots.get(id)
      if (run?.loss !== undefined) listener(run.loss)
      else if (run?.execution !== undefined) (run.lossListeners ??= new Set()).add(listener)
      return () => void run?.lossListeners?.delete(listener)
    },

    fail(id, error) {
      const run = slots.get(id)
      if (run?.execution === undefined) return 'inactive'
      const { state, controller } = run.execution
      if (state.open.suspended) return 'inactive'
      if (state.end !== undefined || controller.signal.aborted) return 'ending'
      run.failure = error
      send(run, { type: 'failed' })
      return state.open.answered ? 'completed' : 'failed'
    },

    attach(id, policy) {
      const run = slots.of(id)
      const leaveFleet = fleet.attend(id)
      presence.attached(run, policy)
      const onLeft = (reason: string) => void stopUnread(run, reason).catch(() => undefined)
      const detach = attachReader(run, policy, onLeft, () => slots.release(run))
      return (how) => {
        leaveFleet()
        detach(how)
      }
    },

    async close(closeGraceMs) {
      for (const run of slots.all()) {
        send(run, { type: 'shutdown' })
        handOver(run)
      }
      const over = new AbortController()
      await Promise.race([allRested(), pause(closeGraceMs, over.signal)])
      over.abort()
      // Runs that were about to start may start during this wait, so it repeats.
      while (slots.all().some(({ slot }) => isBusy(slot))) {
        for (const run of slots.all()) send(run, { type: 'expired' })
        await allRested()
      }
    },
  }
}

/** A run with `recover` continues after the restart, so its log gets no end. */
function shutDown(recover: boolean): MillraceError {
  return new MillraceError(recover ? 'abandoned' : 'interrupted', 'The server is shutting down.')
}

/** The work behind the effects of a run's lifecycle. Each reports its result to the slot. */
interface WorkContext {
  options: TimedOptions
  activeRuns: ActiveRuns
  send: Slots['send']
  rejoin: Rejoin
  /** Notifies the fleet when the run's first request is due, in ms of the steady clock. */
  want(id: string, at: number): void
  newRunId: SupervisorContext['newRunId']
  startNext: SupervisorContext['startNext']
  settleMessages: SupervisorContext['settleMessages']
}

function createWork(context: WorkContext) {
  const { options, activeRuns, send, rejoin, want, newRunId, startNext, settleMessages } = context
  const { agents, warn = () => undefined } = options
  const { registry, store, secrets = [], secretKeys = [], clock, graceMs = 300, onRun, openAccount } = options

  const canRun = store.fleet.shared ? createCanRun({ agents, registry, log: store.log, warn }) : undefined

  /** Claims the run if it needs an owner. Settles when the result is stored. */
  async function claim(run: Supervised, reason: ClaimReason, epoch?: number): Promise<Looked> {
    const looked = await claimRun(
      { store, clock, rejoin, canRun },
      { run: run.id, reason, epoch, due: run.due, plan: run.plan },
    )
    if (looked.type === 'claim-failed') {
      send(run, { type: 'claim-failed', ...omitUndefined({ epoch: looked.epoch }) })
      throw looked.error
    }
    if (looked.type === 'unclaimed') {
      run.due = looked.due
      run.seen = looked.seen
      run.loss = undefined
      if (looked.lacks) void store.fleet.pass?.(run.id).catch(() => undefined)
      send(run, { type: 'unclaimed', ...(looked.due && { dueAt: firstDue(looked.due) }) })
      return looked
    }
    run.plan = undefined
    const { epoch: claimed, work } = (run.owned = looked.owned)
    send(run, { type: 'claimed', epoch: claimed, next: work.type, queued: work.type === 'execute' && !!work.turn })
    if (work.type === 'end') await run.ending
    else if (run.execution !== undefined) {
      // Requests that stay open have deadlines while the run executes, too.
      run.due = dueOf(work.unanswered ?? [], run.due, clock.wall(), clock)
      want(run.id, firstDue(run.due))
      // One that waits for its turn would keep a server from starting until the run before it has ended.
      if (work.turn === undefined) await run.execution.begun
    }
    return looked
  }

  /** Ends a run that was claimed to be ended. */
  async function end(run: Supervised, { epoch, state }: Owned, ending: RunEnding): Promise<void> {
    try {
      const context = { log: store.log, registry, clock, graceMs, secrets, secretKeys, openAccount }
      void cancelTasks({ state, store, mcp: registry.mcp })
      const how = await writeEnd(context, { run: run.id, epoch }, state, ending)
      if (how === 'ended') notify(onRun, state)
      send(run, { type: how })
      if (how === 'ended') void settleMessages(run.id).catch(() => undefined)
    } catch (error) {
      run.loss = lostError(error)
      send(run, { type: 'store-failed' })
      throw error
    }
  }

  function execute(run: Supervised, owned: Owned): void {
    if (owned.work.type !== 'execute') return
    const { pipeline } = owned.work
    // A new run has its place already.
    activeRuns.goOn(run.id, owned.state.start?.agent ?? '', pipeline)
    const execution = startExecution(options, owned, owned.work, {
      onTurn: () => send(run, { type: 'turn' }),
      headers: run.mcpHeaders,
      newRunId,
      startNext,
    })
    run.execution = execution
    void execution.end.then((how) => settle(run, execution.state, how))
  }

  function settle(run: Supervised, state: RunState, how: RunnerEnd): void {
    run.execution = undefined
    activeRuns.leave(run.id)
    // Readers of a moved run are readers of its next owner.
    if (how.type !== 'moved' && !(how.type === 'handed-on' && store.fleet.shared)) closeReaders(run)
    switch (how.type) {
      case 'suspended':
        run.due = dueOf(state.open.requests.values(), run.due, state.lastTimestamp, clock)
        // Replies have not been checked since.
        run.seen = 0
        notify(onRun, state)
        return send(run, { type: 'suspended', dueAt: firstDue(run.due) })
      case 'store-failed':
        run.loss = lostError(how.error)
        // A failing store is reported elsewhere, and the end of the run is recorded later.
        if (run.loss.code !== 'store-failed') notify(onRun, state, toErrorValue(how.error))
        return send(run, { type: 'store-failed' })
      case 'ended':
        noteCalls(store.runs, state)
        notify(onRun, state)
        send(run, { type: 'ended' })
        // Also messages that came while the end was written: the process that has posted one may be gone.
        if (state.messages.size > 0 || store.fleet.shared)
          void settleMessages(run.id).catch((error: unknown) => warn(messageOf(error)))
        return
      default:
        return send(run, { type: how.type })
    }
  }

  return { claim, end, execute }
}

/** The work behind the effects of a run's lifecycle. Each reports to the slot how it went. */
import { compact } from '../part/compact.ts'
import { toErrorValue } from '../part/error.ts'
import type { RunnerEnd } from '../engine/runner.ts'
import type { RunState } from '../engine/state.ts'
import { writeEnd, type RunEnding } from '../engine/write-end.ts'
import type { ActiveRuns } from './active-runs.ts'
import { claimRun, type Looked, type Owned, type Rejoin } from './claim-run.ts'
import { createCanRun } from './can-run.ts'
import { closeReaders } from './disconnect-policy.ts'
import { dueOf, firstDue } from './due-requests.ts'
import { startExecution } from './execution.ts'
import type { ClaimReason } from './lifecycle.ts'
import { notify } from './run-event.ts'
import { lostError } from './runtime-errors.ts'
import type { TimedOptions } from './runtime-options.ts'
import type { Slots, Supervised } from './slots.ts'
import { noteCalls } from './turns-by-calls.ts'

export interface WorkContext {
  options: TimedOptions
  activeRuns: ActiveRuns
  send: Slots['send']
  rejoin: Rejoin
  /** Tells the fleet when the run's first request is due, in ms of the steady clock. */
  want(id: string, at: number): void
}

export function createWork({ options, activeRuns, send, rejoin, want }: WorkContext) {
  const { agents, warn = () => undefined } = options
  const { registry, store, secrets = [], secretKeys = [], clock, graceMs = 300, onRun } = options

  const canRun = store.fleet.shared ? createCanRun({ agents, registry, log: store.log, warn }) : undefined

  /** Claims the run if it wants an owner. Settles when what follows from that is stored. */
  async function claim(run: Supervised, reason: ClaimReason, epoch?: number): Promise<Looked> {
    const looked = await claimRun(
      { store, clock, rejoin, canRun },
      { run: run.id, reason, epoch, due: run.due, plan: run.plan },
    )
    if (looked.type === 'claim-failed') {
      send(run, { type: 'claim-failed', ...compact({ epoch: looked.epoch }) })
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
      // Requests that stay open are due while the run goes on as well.
      run.due = dueOf(work.unanswered ?? [], run.due, clock.wall(), clock)
      want(run.id, firstDue(run.due))
      await run.execution.begun
    }
    return looked
  }

  /** Ends a run that was claimed for that. */
  async function end(run: Supervised, { epoch, state }: Owned, ending: RunEnding): Promise<void> {
    try {
      const context = { log: store.log, registry, clock, graceMs, secrets, secretKeys }
      const how = await writeEnd(context, { run: run.id, epoch }, state, ending)
      if (how === 'ended') notify(onRun, state)
      send(run, { type: how })
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
    const execution = startExecution(options, owned, owned.work, () => send(run, { type: 'turn' }), run.mcpHeaders)
    run.execution = execution
    void execution.end.then((how) => settle(run, execution.state, how))
  }

  function settle(run: Supervised, state: RunState, how: RunnerEnd): void {
    run.execution = undefined
    activeRuns.leave(run.id)
    // Readers of a run that moves are readers of its next owner.
    if (how.type !== 'moved' && !(how.type === 'handed-on' && store.fleet.shared)) closeReaders(run)
    switch (how.type) {
      case 'suspended':
        run.due = dueOf(state.open.requests.values(), run.due, state.lastTimestamp, clock)
        // Nobody has looked for answers since.
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
        return send(run, { type: 'ended' })
      default:
        return send(run, { type: how.type })
    }
  }

  return { claim, end, execute }
}

/**
 * Supervises the runs of this process. `lifecycle.ts` decides what happens to a run; this performs the effects. Only who has
 * claimed a run in the store writes its log.
 */
import { MillraceError, type ErrorValue } from '../part/error.ts'
import { timeOf } from '../part/store-time.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import { pause } from '../async/pause.ts'
import type { McpHeaders } from '../tools/mcp/own-headers.ts'
import type { ActiveRuns } from './active-runs.ts'
import { createAnnouncements, type Announcements } from './announcements.ts'
import type { Looked, Rejoin } from './claim-run.ts'
import type { ForkPlan } from './fork-run.ts'
import { attachReader } from './disconnect-policy.ts'
import { closeDue } from './due-requests.ts'
import { isBusy, leaseOf, type Effect } from './lifecycle.ts'
import { createPresence } from './presence.ts'
import { createWork } from './run-work.ts'
import type { TimedOptions } from './runtime-options.ts'
import { createSlots, type Supervised } from './slots.ts'

export interface SupervisorContext {
  options: TimedOptions
  activeRuns: ActiveRuns
  shutdown: AbortSignal
  rejoin: Rejoin
  /** The policy of its readers asks for a stop. */
  stop(run: string, reason: string): Promise<void>
  /** Called when a run here has a deadline, so that the fleet is listened to. */
  watch(): void
}

/**
 * `failed`: the run ends as failed. `completed`: its answer had ended, so it ends as completed; steps that still run are
 * stopped. `ending`: its outcome was decided before. `inactive`: it does not run in this process.
 */
export type FailEffect = 'failed' | 'completed' | 'ending' | 'inactive'

export interface Supervisor extends Announcements {
  /** The number of runs that are active here. */
  readonly active: number
  /** Looks whether a run wants an owner, and becomes it. Resolves when what follows from that is stored. */
  look(id: string, why: 'hint' | 'orphan'): Promise<Looked | undefined>
  /** Goes on with a fork, as its owner; without a plan it waits for answers. Resolves when what follows from that is stored. */
  goOn(id: string, plan: ForkPlan | undefined): Promise<void>
  /** Whether this process owns a run, or is about to start it, or will end it when the store works again. */
  owns(id: string): boolean
  /** Whether this process saw the run being suspended, or owns it. */
  knows(id: string): boolean
  /** Resolves when nothing here works on the run, and no message is about to resume or end it. */
  rested(id: string): Promise<void>
  lossOf(id: string): ErrorValue | undefined
  /** Headers for MCP servers that a request of the run brought. Those for the same server are replaced. */
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
  const work = createWork({ options, activeRuns, send, rejoin, want })
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
    // Without it the run is found by its row, at the next start.
    const moment = at === undefined ? undefined : timeOf(store) + at - clock.steady()
    void fleet.want(id, moment, seen).catch(() => undefined)
  }

  /** Leaves an active run for another process. Where there is none, it goes on for as long as this one waits. */
  function handOver({ execution }: Supervised): void {
    if (fleet.shared) execution?.leave()
  }

  async function stopUnread({ id, execution }: Supervised, reason: string): Promise<void> {
    // The readers were cut off. The next owner waits for them.
    if (fleet.shared && shutdown.aborted) return
    const open = execution?.state.open
    // A complete answer is not interrupted, and a suspended run keeps waiting for its client.
    if (open === undefined ? (await runs.get(id))?.status !== 'running' : open.answered || open.suspended) return
    if (!(await fleet.attended(id))) await stop(id, reason)
  }

  async function look(run: Supervised, type: 'hint' | 'orphan'): Promise<Looked | undefined> {
    send(run, { type })
    let looked: Looked | undefined
    // A hint that comes while it looks makes it look again.
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

    look: (id, type) => look(slots.of(id), type),

    async goOn(id, plan) {
      const run = slots.of(id)
      // The same fork was asked for twice at once.
      if (run.slot.state !== 'idle') return void (await run.claim)
      run.plan = plan
      await look(run, plan === undefined ? 'hint' : 'orphan')
    },

    owns(id) {
      const slot = slots.get(id)?.slot
      return slot?.state === 'queued' || slot?.state === 'lost' || (slot !== undefined && leaseOf(slot) !== undefined)
    },

    knows: (id) => slots.get(id) !== undefined,

    async rested(id) {
      for (let run = slots.get(id); run?.rested !== undefined; run = slots.get(id)) await run.rested.promise
    },

    lossOf: (id) => slots.get(id)?.loss,

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
      // While this waits, runs that were about to start may start, so it repeats until none is left.
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

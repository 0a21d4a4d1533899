/** The runs of this process: one slot for each, with the data for the effects of its lifecycle. */
import type { ErrorValue, MillraceError } from '../part/error.ts'
import type { Looked, Owned } from './claim-run.ts'
import type { Readers } from './disconnect-policy.ts'
import type { McpHeaders } from '../tools/mcp/own-headers.ts'
import type { Due } from './pending-answers.ts'
import type { Execution } from './execution.ts'
import type { ForkPlan } from './fork-run.ts'
import type { Unread } from './presence.ts'
import { createSlot, isBusy, transition, type Effect, type Event, type Slot } from './lifecycle.ts'

export interface Supervised {
  readonly id: string
  slot: Slot
  /** Settles when this process does not work on the run for now. */
  rested?: PromiseWithResolvers<void> | undefined
  /** The announced start. Settles when the run has its first entry, or when it will never have one. */
  begins?: PromiseWithResolvers<void> | undefined
  /** Settles when all runs before it in its thread have ended. */
  ticket?: Promise<void> | undefined
  /** The current claim. Settles when the first entry after it is stored. */
  claim?: Promise<Looked> | undefined
  owned?: Owned | undefined
  execution?: Execution | undefined
  ending?: Promise<void> | undefined
  /** The plan of a fork that was not claimed yet. */
  plan?: ForkPlan | undefined
  /** Why the execution is aborted, if not for a shutdown. */
  failure?: MillraceError | undefined
  /** Why the run can no longer be recorded. */
  loss?: ErrorValue | undefined
  lossListeners?: Set<(error: ErrorValue) => void> | undefined
  due?: Due | undefined
  /** The number of inbox messages at the last check for replies while suspended. */
  seen?: number | undefined
  /** MCP headers from its requests. Kept only here, while the run is known. */
  mcpHeaders?: McpHeaders | undefined
  readers?: Readers | undefined
  /** It has no readers in any process. */
  unread?: Unread | undefined
}

export interface Slots {
  get(id: string): Supervised | undefined
  /** Creates it if there is none. */
  of(id: string): Supervised
  all(): Supervised[]
  send(run: Supervised, event: Event): void
  /** Drops a run without work here. Call this when a field that keeps it is cleared. */
  release(run: Supervised): void
}

export function createSlots(perform: (run: Supervised, effect: Effect) => void, isClosing: () => boolean): Slots {
  const runs = new Map<string, Supervised>()

  function release(run: Supervised): void {
    const { id, slot, begins, ticket, readers } = run
    const isOver = slot.state === 'idle' || slot.state === 'ended'
    if (isOver && !begins && !ticket && !readers && runs.get(id) === run) runs.delete(id)
  }

  return {
    get: (id) => runs.get(id),
    of(id) {
      let run = runs.get(id)
      if (run === undefined) runs.set(id, (run = { id, slot: createSlot(isClosing()) }))
      return run
    },
    all: () => [...runs.values()],
    send(run, event) {
      const wasBusy = isBusy(run.slot)
      const [slot, effects] = transition(run.slot, event)
      run.slot = slot
      if (!wasBusy && isBusy(slot)) run.rested = Promise.withResolvers()
      for (const effect of effects) perform(run, effect)
      release(run)
    },
    release,
  }
}

/**
 * The lifecycle of one run in one process, as a state machine: no I/O, no promises, no time. `supervisor.ts` performs the effects and reports back
 * with events. The store decides who owns a run, with {@link Log.claim}: the machine only requests it. docs/lifecycle.md has a drawing.
 */
import { omitUndefined } from '../part/omit-undefined.ts'

/**
 * Why a run is claimed. `hint`: it got a reply or a stop, or a request is due. `orphan`: it is active without an owner. `lost`: this process could
 * no longer record it.
 */
export type ClaimReason = 'hint' | 'orphan' | 'lost'

export type Slot = Readonly<
  (
    | { state: 'idle' }
    /** It starts here. Without `epoch` it has no owner and no entry yet; with one it waits for its turn in its thread. */
    | { state: 'queued'; epoch?: number; hinted?: true }
    /** Checks the run, claims it and folds its log. `again`: hints that came meanwhile. */
    | {
        state: 'claiming'
        reason: ClaimReason
        again?: 'hint' | 'orphan'
        epoch?: number
        tries: number
      }
    /** `hinted`: a hint came, which this owner reads from its inbox, unless it turns out to be none any more. */
    | { state: 'running'; epoch: number; hinted?: true }
    /** It waits for replies. `dueAt`: when its first request is due, in ms of the steady clock. */
    | { state: 'suspended'; dueAt: number }
    /** Its outcome is decided; its last entries are being stored. */
    | { state: 'ending'; epoch: number; hinted?: true }
    /** The store failed. `epoch`: of this process's claim, if it has one. `reason`: the reason of the next claim. */
    | { state: 'lost'; reason: ClaimReason; epoch?: number; tries: number }
    | { state: 'ended' }
  ) & {
    /** The process shuts down. */
    closing: boolean
  }
>

export type Event =
  /** A start was requested here. */
  | { type: 'announced' }
  /** The announced run will not start. */
  | { type: 'refused' }
  /** The announced run starts, as its first owner. */
  | { type: 'started'; epoch: number }
  /** The run's turn in its thread has come. */
  | { type: 'turn' }
  | { type: 'hint' }
  | { type: 'orphan' }
  /** This process owns the run. `next`: how it continues. `queued`: it waits for its turn again. */
  | { type: 'claimed'; epoch: number; next: 'execute' | 'end'; queued?: boolean }
  /** This process does not own the run. `dueAt`: it waits for replies, until then. */
  | { type: 'unclaimed'; dueAt?: number }
  /** The store failed while the run was claimed; `epoch`: after the claim. */
  | { type: 'claim-failed'; epoch?: number }
  | { type: 'suspended'; dueAt: number }
  | { type: 'ended' }
  /** Another owner continues it. */
  | { type: 'moved' }
  /** It was released for the next owner, between two steps. */
  | { type: 'handed-on' }
  | { type: 'store-failed' }
  /** An error outside of its steps ends it. */
  | { type: 'failed' }
  /** The delay of `retry` is over. */
  | { type: 'retry' }
  | { type: 'shutdown' }
  /** The grace time of active runs at a shutdown is over. */
  | { type: 'expired' }

export type Effect =
  /** Leads to `claimed`, `unclaimed` or `claim-failed`. */
  | { type: 'claim'; reason: ClaimReason; epoch?: number }
  /** Leads to `turn` and to `suspended`, `ended`, `moved`, `handed-on` or `store-failed`. */
  | { type: 'execute'; epoch: number }
  /** Leads to `ended`, `moved` or `store-failed`. */
  | { type: 'end'; epoch: number }
  /** Aborts the execution. */
  | { type: 'abort'; reason: 'failed' | 'shutdown' }
  /** Closes the requests of an active run that are due. */
  | { type: 'close-due' }
  /** Notifies the fleet that the run needs an owner: at a moment of the steady clock, or now. */
  | { type: 'want'; at?: number }
  /** Leads to `retry`. */
  | { type: 'retry'; delay: number }
  /** Reports to readers that the run is lost. */
  | { type: 'report-loss' }
  /** No more work here for now: resolves `rested`. */
  | { type: 'rest' }

type Next = readonly [Slot, readonly Effect[]]

export function createSlot(closing = false): Slot {
  return { state: 'idle', closing }
}

/** Whether this process works on the run. */
export function isBusy({ state }: Slot): boolean {
  return state === 'queued' || state === 'claiming' || state === 'running' || state === 'ending'
}

/** The epoch under which this process writes the run's log. */
export function leaseOf(slot: Slot): number | undefined {
  return slot.state === 'queued' || slot.state === 'running' || slot.state === 'ending' ? slot.epoch : undefined
}

/** Events without a meaning in a state are ignored. */
export function transition(slot: Slot, event: Event): Next {
  if (slot.state === 'ended') return [slot, []]
  if (event.type === 'shutdown') return shutDown(slot)
  switch (slot.state) {
    case 'idle':
    case 'suspended':
      return fromRest(slot, event)
    case 'queued':
      return slot.epoch === undefined ? fromAnnounced(slot, event) : fromOwned(slot, slot.epoch, event)
    case 'running':
    case 'ending':
      return fromOwned(slot, slot.epoch, event)
    case 'claiming':
      return fromClaiming(slot, event)
    case 'lost':
      return event.type === 'retry' ? claim(slot, slot.reason, slot) : [slot, []]
  }
}

function fromRest(slot: Slot, { type }: Event): Next {
  if (type === 'announced' && slot.state === 'idle') return [{ state: 'queued', closing: slot.closing }, []]
  // While the process shuts down, messages are left to the next owner.
  if ((type !== 'hint' && type !== 'orphan') || slot.closing) return [slot, []]
  return claim(slot, type)
}

function fromAnnounced(slot: Slot, event: Event): Next {
  if (event.type === 'refused') return rest({ state: 'idle', closing: slot.closing })
  if (event.type !== 'started') return [slot, []]
  const { epoch } = event
  return [{ state: 'queued', epoch, closing: slot.closing }, [{ type: 'execute', epoch }]]
}

function fromOwned(slot: Extract<Slot, { hinted?: true }>, epoch: number, event: Event): Next {
  const { state, closing, hinted } = slot
  const own = { epoch, closing, ...omitUndefined({ hinted }) }
  switch (event.type) {
    case 'turn':
      return state === 'queued' ? [{ ...own, state: 'running' }, []] : [slot, []]
    case 'hint':
      return [{ ...slot, hinted: true }, state === 'ending' ? [] : [{ type: 'close-due' }]]
    case 'failed':
    case 'expired': {
      if (state === 'ending') return [slot, []]
      const reason = event.type === 'failed' ? 'failed' : 'shutdown'
      return [{ ...own, state: 'ending' }, [{ type: 'abort', reason }]]
    }
    case 'suspended': {
      if (closing) return rest({ state: 'idle', closing }, { type: 'want', at: event.dueAt })
      // Nothing else would notice a reply or a stop that came during the suspension.
      return claim(slot, 'hint')
    }
    case 'ended':
      return rest({ state: 'ended', closing })
    case 'moved':
      // The hint may have been for the next owner, who has looked before it came.
      if (hinted) return closing ? rest({ state: 'idle', closing }, { type: 'want' }) : claim(slot, 'hint')
      return rest({ state: 'idle', closing })
    case 'handed-on':
      return rest({ state: 'idle', closing }, { type: 'want' })
    case 'store-failed':
      return lose({ state: 'lost', reason: 'lost', epoch, tries: 0, closing }, { type: 'report-loss' })
    default:
      return [slot, []]
  }
}

function fromClaiming(slot: Extract<Slot, { state: 'claiming' }>, event: Event): Next {
  const { closing, reason, again, epoch: lease, tries } = slot
  switch (event.type) {
    case 'hint':
    case 'orphan':
      return [{ ...slot, again: again === 'orphan' ? again : event.type }, []]
    case 'claimed': {
      const { epoch, next, queued = false } = event
      if (next === 'end') return [{ state: 'ending', epoch, closing }, [{ type: 'end', epoch }]]
      // Claimed too late: the next owner continues it.
      if (closing) return rest({ state: 'idle', closing }, { type: 'want' })
      return [{ state: queued ? 'queued' : 'running', epoch, closing }, [{ type: 'execute', epoch }]]
    }
    case 'unclaimed': {
      const due = event.dueAt
      // Always: a hint may come a little early, and then the fleet has dropped the moment.
      const effects: Effect[] = due === undefined ? [] : [{ type: 'want', at: due }]
      if (again !== undefined && !closing) {
        const [next, more] = claim(slot, again)
        return [next, [...effects, ...more]]
      }
      if (due === undefined || closing) return rest({ state: 'idle', closing }, ...effects)
      return rest({ state: 'suspended', dueAt: due, closing }, ...effects)
    }
    case 'claim-failed': {
      // A successful claim must be remembered: no other process would take care of the run.
      const epoch = event.epoch ?? lease
      const queuedReason = event.epoch !== undefined && reason === 'hint' ? 'orphan' : reason
      return lose({ state: 'lost', reason: queuedReason, tries, closing, ...omitUndefined({ epoch }) })
    }
    default:
      return [slot, []]
  }
}

function shutDown(slot: Slot): Next {
  if (slot.closing) return [slot, []]
  const closing = true
  if (slot.state === 'suspended') return [{ state: 'idle', closing }, []]
  // The log of a lost run has no end: the next owner writes it.
  if (slot.state === 'lost') return [{ state: 'idle', closing }, [{ type: 'want' }]]
  return [{ ...slot, closing }, []]
}

function claim(
  { closing }: Slot,
  reason: ClaimReason,
  { epoch, tries = 0 }: { epoch?: number; tries?: number } = {},
): Next {
  const lease = omitUndefined({ epoch })
  return [{ state: 'claiming', reason, tries, closing, ...lease }, [{ type: 'claim', reason, ...lease }]]
}

function lose(slot: Extract<Slot, { state: 'lost' }>, ...effects: Effect[]): Next {
  if (slot.closing) return rest({ state: 'idle', closing: true }, ...effects, { type: 'want' })
  const delay = Math.min(100 * 2 ** slot.tries, 5000)
  return rest({ ...slot, tries: slot.tries + 1 }, ...effects, { type: 'retry', delay })
}

function rest(slot: Slot, ...effects: Effect[]): Next {
  return [slot, [...effects, { type: 'rest' }]]
}

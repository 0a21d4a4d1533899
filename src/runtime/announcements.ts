/**
 * The runs that are about to start in this process, and their turns in their threads. Saves other requests in this process from waiting; the store
 * decides.
 */
import type { Owned } from './claim-run.ts'
import type { Slots } from './slots.ts'
import { anySignal } from '../async/any-signal.ts'
import { pause } from '../async/pause.ts'
import type { Log, RunRow, Store, NewMessage, Posted } from '../part/log.ts'
import { awaitEntry } from './await-entry.ts'
import { keptOf } from '../fold/read-view.ts'
import { closingError } from './runtime-errors.ts'

/** A start that was announced. Call one of its functions. */
export interface Announcement {
  /** `moved`: another process has started the run in the meantime. Rejects if the store fails before the first entry. */
  start(owned: Owned): Promise<'stored' | 'moved'>
  /** `error`: why the run will not start. */
  refuse(error?: unknown): void
}

export interface Announcements {
  /** Undefined if the run is known here already. */
  announce(id: string): Announcement | undefined
  /** Settles when an announced run has its first entry; rejects if it will never have one. */
  beginning(id: string): Promise<void> | undefined
  /** Settles when all runs before it in its thread have ended. */
  ticketOf(id: string): Promise<void> | undefined
  keepTicket(id: string, ticket: Promise<void>): void
}

export function createAnnouncements(slots: Slots): Announcements {
  return {
    announce(id) {
      const run = slots.of(id)
      if (run.slot.state !== 'idle' || run.begins !== undefined) return undefined
      const begins = (run.begins = Promise.withResolvers<void>())
      // Not every caller awaits it.
      begins.promise.catch(() => undefined)
      slots.send(run, { type: 'announced' })
      const finish = (settle: () => void) => {
        run.begins = undefined
        settle()
        slots.release(run)
      }
      return {
        start(owned) {
          run.owned = owned
          slots.send(run, { type: 'started', epoch: owned.epoch })
          const { begun } = run.execution!
          begun.then(
            () => finish(begins.resolve),
            (error: unknown) => finish(() => begins.reject(error)),
          )
          return begun
        },
        refuse(error) {
          slots.send(run, { type: 'refused' })
          finish(() => (error === undefined ? begins.resolve() : begins.reject(error)))
        },
      }
    },

    beginning: (id) => slots.get(id)?.begins?.promise,

    ticketOf: (id) => slots.get(id)?.ticket,

    keepTicket(id, ticket) {
      const run = slots.of(id)
      const clear = () => {
        if (run.ticket === settled) run.ticket = undefined
        slots.release(run)
      }
      const settled: Promise<void> = ticket.then(clear, clear)
      run.ticket = settled
    },
  }
}

/* Runs that have an idempotency key or a position in their thread, but no entry yet. Their process may have died. */

/** ms to wait for the first entry of a run that another process has announced. */
const patience = 3000
/** Polling interval meanwhile, in ms. */
const askEvery = 300
/**
 * After a response of the store that is this late, in ms, the wait starts anew: the store or this process was unavailable, and the other process
 * may have waited for the same store.
 */
const late = 1000

const overtaken = 'The run did not start in time, and its conversation continued.'

/**
 * The row of an announced run, as soon as it has its first entry. Undefined if none came in time: then the run is kept from starting, so that no
 * work is done twice and no runs overlap. `signal`: stops the wait at shutdown.
 */
export async function awaitStart(store: Store, run: string, signal: AbortSignal): Promise<RunRow | undefined> {
  const { log, runs } = store
  const row = await runs.get(run)
  if (row !== undefined || (await isGivenUp(log, run))) return row
  const begun = await awaitRow(store, run, signal)
  // It may start elsewhere while this process shuts down.
  if (begun !== undefined || signal.aborted) return begun
  await giveUp(log, run, overtaken)
  // It may have started at the last moment. Then it ends at once.
  return runs.get(run)
}

async function awaitRow({ log, runs }: Store, run: string, shutdown: AbortSignal): Promise<RunRow | undefined> {
  const over = new AbortController()
  const signal = anySignal([shutdown, over.signal])
  const entry = awaitEntry(log, run, () => true, { signal })
  const end = () => over.abort()
  entry.then(end, end)
  try {
    for (let since = performance.now(); !signal.aborted && performance.now() - since < patience;) {
      const began = performance.now()
      await pause(askEvery, signal)
      const row = await runs.get(run)
      if (row !== undefined) return row
      if (performance.now() - began > askEvery + late) since = performance.now()
    }
  } finally {
    end()
  }
  await entry
  return runs.get(run)
}

/** Keeps an announced run from starting: a process that starts it anyway finds the stop in its inbox, before the first step. */
export async function giveUp(log: Log, run: string, reason: string): Promise<void> {
  await log.post(run, 'stop', { reason })
}

async function isGivenUp(log: Log, run: string): Promise<boolean> {
  for await (const { key } of log.inbox(run)) if (key === 'stop') return true
  return false
}

/** Finds the run for a request that may be a repetition: the run that has its key, or a new one. */
interface TurnClaim {
  store: Store
  threadId: string | undefined
  key: string
  /** The id of the run that the caller would start. It must be announced. */
  run: string
  /** The claim to a position in the thread, which is made in the same write if the run gets the key. */
  place?: NewMessage | undefined
  announcements: Pick<Announcements, 'beginning'>
  shutdown: AbortSignal
}

interface ClaimedTurn {
  /** The run with the key. */
  winner: string
  /** The result of the claim to a position. */
  placed?: Posted | undefined
}

/**
 * The run with the key: the caller's own, which it must start, or one that exists. A repeated or concurrent request reads the run
 * of the first one; if the first one was refused, it throws the same error.
 */
export async function claimTurn(claim: TurnClaim): Promise<ClaimedTurn> {
  const { store, threadId, key, run, place, announcements, shutdown } = claim
  const inbox = threadId === undefined ? `key:${key}` : `thread:${threadId}`
  for (let after = ''; ;) {
    const turn = { key: `turn:${key}${after}`, message: { run } }
    const [claimed, placed] = await store.log.postAll(inbox, place === undefined ? [turn] : [turn, place])
    const winner = (claimed!.message as { run: string }).run
    if (winner === run) return { winner, placed }
    await announcements.beginning(winner)
    const row = await awaitStart(store, winner, shutdown)
    if (row !== undefined && !(await hasNoContent(store, row))) return { winner }
    if (shutdown.aborted) throw closingError()
    // A run that did not start, or failed before its first content, may be retried. `Retry-After` tells clients when.
    after = `:after:${winner}`
  }
}

/** Assigns a key to an existing run: a request with the key joins it. */
export async function claimFor(log: Log, threadId: string, key: string, run: string): Promise<void> {
  await log.post(`thread:${threadId}`, `turn:${key}`, { run })
}

async function hasNoContent(store: Store, row: RunRow): Promise<boolean> {
  const { status } = row
  if (status !== 'failed' && status !== 'timed-out' && status !== 'interrupted') return false
  return (await keptOf(store, row))?.messages.length === 0
}

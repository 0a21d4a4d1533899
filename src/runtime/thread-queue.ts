/**
 * Allows one active run per thread. A thread's runs form a chain in the store: the first run that posts `after:<previous run>` is the next one. So
 * concurrent requests each get a position, in any process.
 */
import { MillraceError } from '../part/error.ts'
import { hasEnded, type NewMessage, type Posted, type RunRow, type Store } from '../part/log.ts'
import type { BusyPolicy } from '../pipeline/pipeline.ts'
import { type Announcements, awaitStart } from './announcements.ts'
import { awaitEntry } from './await-entry.ts'
import type { AwaitTurn } from './claim-run.ts'
import { predecessor, runsBack } from './conversation.ts'

export interface ThreadQueue {
  /**
   * Appends a run to the thread. Throws `thread-busy` (409) if the policy is `reject` and a run is active. The run may start when `turn` settles:
   * at once, or when all runs before it have ended (`interrupt` stops them first). A suspended run is always stopped, because the conversation has
   * continued without its reply, unless the options keep it.
   */
  join(threadId: string, run: string, policy: BusyPolicy, options?: JoinOptions): Promise<Ticket>
  /** The claim to the position after the last run, for a caller that posts it together with another message. */
  lastPlace(threadId: string, run: string): Promise<QueueTicket>
  /** After a crash: the turn of a run that already has its position. Undefined if it has come, or the run is the thread's first. */
  rejoin(row: Pick<RunRow, 'id' | 'threadId'>): Promise<AwaitTurn | undefined>
}

export interface JoinOptions {
  tried?: TriedPlace | undefined
  /** Suspended runs stay suspended, and the run does not wait for them. */
  keepsSuspended?: boolean | undefined
  /** It has a position, and does not wait for its turn. */
  isBeside?: boolean | undefined
}

/** The claim to a position in a thread. */
export interface QueueTicket extends NewMessage {
  /** The run before it; empty in a new thread. */
  previous: string
}

/** A claim that was posted already. */
export interface TriedPlace {
  place: QueueTicket
  posted: Posted
}

export interface Ticket {
  /** The previous run; undefined in a new thread. If its process crashed early, that run may have no entries. */
  previous?: string
  /** Settles early, without throwing, when the signal aborts. */
  turn?: AwaitTurn
}

export interface ThreadQueueOptions {
  store: Store
  announcements: Pick<Announcements, 'beginning' | 'ticketOf' | 'keepTicket'>
  shutdown: AbortSignal
  stop(run: string, reason: string): Promise<void>
}

const unanswered = 'The conversation continued without an answer.'
const interrupted = 'A new message interrupted the run.'

export function createThreadQueue({ store, announcements, shutdown, stop }: ThreadQueueOptions): ThreadQueue {
  const { log, runs } = store

  /** The row of a run that has its position. Undefined if it will never have an entry. */
  async function rowOf(run: string): Promise<RunRow | undefined> {
    await announcements.beginning(run)?.catch(() => undefined)
    return awaitStart(store, run, shutdown)
  }

  /** Whether the last begun run is active, from `last` back. */
  async function isBusy(threadId: string, last: string): Promise<boolean> {
    for await (const run of runsBack(log, threadId, last)) {
      if (announcements.beginning(run) !== undefined) return true
      const row = await rowOf(run)
      if (row !== undefined) return row.status === 'running'
    }
    return false
  }

  /** Follows a run to its end. A suspended run is stopped, or skipped. */
  async function ended({ id, lastSeq }: RunRow, keepsSuspended: boolean): Promise<void> {
    // Reads the last stored entry again: it may be the end, or a suspension.
    for (let after = Math.max(0, lastSeq - 1); ;) {
      const last = await awaitEntry(log, id, ({ type }) => type === 'run-end' || type === 'suspend', { after })
      if (last?.type !== 'suspend') return
      after = last.seq
      if (keepsSuspended) return
      if ((await runs.get(id))?.status === 'suspended') await stop(id, unanswered)
    }
  }

  /** Settles when a run and all runs before it in the thread have ended. */
  async function passed(threadId: string, last: string, policy: BusyPolicy, keepsSuspended: boolean): Promise<void> {
    for await (const run of runsBack(log, threadId, last)) {
      const row = await rowOf(run)
      if (row?.status === 'suspended' && !keepsSuspended) await stop(run, unanswered)
      else if (row?.status === 'running' && policy === 'interrupt') await stop(run, interrupted)
      if (row !== undefined && !hasEnded(row.status)) await ended(row, keepsSuspended)
      const ticket = announcements.ticketOf(run)
      if (ticket !== undefined) return ticket
      // A run that was stopped in the queue may end before the runs ahead of it.
      if (row !== undefined && (await hasWorked(row))) return
    }
  }

  /** Whether the run's turn had come. Its first step is among its first entries. */
  async function hasWorked({ id, status }: RunRow): Promise<boolean> {
    if (status === 'completed') return true
    for await (const batch of log.read(id, { limit: 8 }))
      if (batch.some(({ type }) => type === 'step-start')) return true
    return false
  }

  function queue(
    threadId: string,
    run: string,
    previous: string,
    policy: BusyPolicy,
    keepsSuspended = false,
  ): AwaitTurn {
    const turn = passed(threadId, previous, policy, keepsSuspended)
    announcements.keepTicket(run, turn)
    return (signal) => Promise.race([turn, aborted(signal)])
  }

  async function lastPlace(threadId: string, run: string): Promise<QueueTicket> {
    return placeAfter((await runs.list({ threadId, limit: 1 }))[0]?.id ?? '', run)
  }

  return {
    lastPlace,
    async join(threadId, run, policy, { tried, keepsSuspended, isBeside } = {}) {
      let { previous } = tried?.place ?? (await lastPlace(threadId, run))
      const seen = new Set<string>()
      for (let posted = tried?.posted; ; posted = undefined) {
        // A run that was deleted and started again may come after itself.
        if (seen.has(previous)) throw circular(threadId, previous)
        seen.add(previous)
        if (posted === undefined) {
          if (policy === 'reject' && previous !== '' && (await isBusy(threadId, previous)))
            throw busy(threadId, previous)
          const { key, message } = placeAfter(previous, run)
          posted = await log.post(`thread:${threadId}`, key, message)
        }
        const next = (posted.message as { run: string }).run
        // Also if it has the position already, from a process that died before the start.
        if (next === run) break
        previous = next
      }
      if (previous === '') return {}
      return isBeside === true
        ? { previous }
        : { previous, turn: queue(threadId, run, previous, policy, keepsSuspended) }
    },
    async rejoin({ threadId, id }) {
      const previous = await predecessor(log, threadId, id)
      if (previous === undefined) return undefined
      const row = await runs.get(previous)
      const isFree = row !== undefined && hasEnded(row.status) && (await hasWorked(row))
      return isFree ? undefined : queue(threadId, id, previous, 'queue')
    },
  }
}

function placeAfter(previous: string, run: string): QueueTicket {
  return { previous, key: `after:${previous}`, message: { run } }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

function circular(threadId: string, run: string): MillraceError {
  const message = `The runs of thread ${threadId} follow each other in a circle, through run ${run}. Begin a new thread.`
  return new MillraceError('thread-busy', message, { status: 409 })
}

function busy(threadId: string, run: string): MillraceError {
  const message = `Thread ${threadId} is busy with run ${run}. Wait until it ends, or stop it.`
  return new MillraceError('thread-busy', message, { status: 409 })
}

/** The inbox of a run without owner: replies to its open requests, or a stop. */
import type { Wake } from './runtime.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { Log } from '../part/log.ts'
import type { Accepted } from './foreign-run.ts'
import type { EntryOf } from '../part/entry.ts'
import type { Clock } from '../engine/run-clock.ts'

export interface Pending {
  /** The reason of a stop. */
  stop?: string
  /** It was stopped because its thread was closed: no reply will come. */
  closed?: true
  /** The open requests that have a reply or were closed. */
  answered: Set<string>
  /** Further data that came with the replies. */
  wake: Wake
  /** The accepted continuation of a foreign run. */
  accepted?: Accepted
  /** The number of messages in the inbox. */
  seen: number
}

export async function pendingAnswers(
  log: Log,
  run: string,
  open: { has(requestId: string): boolean },
): Promise<Pending> {
  const answered = new Set<string>()
  let wake: Wake = {}
  let accepted: Accepted | undefined
  let seen = 0
  for await (const { n, key, message } of log.inbox(run)) {
    seen = n
    if (key === 'stop') {
      const { reason = 'Stopped.', closed } = (message ?? {}) as { reason?: string; closed?: true }
      return { stop: reason, answered, wake, seen, ...omitUndefined({ closed }) }
    }
    const requestId = key.startsWith('answer:') ? key.slice('answer:'.length) : undefined
    if (requestId === undefined || !open.has(requestId)) continue
    answered.add(requestId)
    const { protocol, labels, input, ownHeaders } = message as Wake
    accepted = (message as { accepted?: Accepted }).accepted ?? accepted
    wake = { ...wake, ...omitUndefined({ protocol, labels, ownHeaders, input: input && { ...wake.input, ...input } }) }
  }
  return { answered, wake, seen, ...omitUndefined({ accepted }) }
}

/*
 * The deadlines of suspended runs' requests. A process that saw the suspension uses its steady clock, so setting the wall clock neither shortens
 * nor extends a client's time. Timers are the fleet's (`Fleet.want`).
 */

/** Request id → ms of the steady clock. */
export type Due = ReadonlyMap<string, number>

export type PendingRequest = Pick<EntryOf<'request'>, 'requestId' | 'deadline' | 'timestamp'>

/**
 * `known`: from an earlier suspension; a request keeps its moment when the run is resumed and suspended again. `now`: epoch ms by
 * the clock of the run's log, or by the wall clock after a restart.
 */
export function dueOf(requests: Iterable<PendingRequest>, known: Due | undefined, now: number, { steady }: Clock): Due {
  const due = new Map<string, number>()
  for (const { requestId, deadline, timestamp } of requests) {
    // If the clock was set back, the client must not get more time than the whole deadline.
    const left = Math.min(deadline - now, deadline - timestamp)
    due.set(requestId, known?.get(requestId) ?? steady() + left)
  }
  return due
}

/** The earliest moment; Infinity without requests. */
export function firstDue(due: Due): number {
  return Math.min(...due.values())
}

/** Closes the due requests without a reply. Resolves with the moment of the next one, or Infinity. */
export async function closeDue(log: Log, run: string, due: Due, { steady }: Clock): Promise<number> {
  const now = steady()
  for (const [requestId, moment] of due) {
    if (moment <= now) await log.post(run, `answer:${requestId}`, { closed: 'deadline' })
  }
  return Math.min(...[...due.values()].filter((moment) => moment > now))
}

/** The open requests of a run, from its log. */
export async function openRequests(log: Log, run: string): Promise<PendingRequest[]> {
  const open = new Map<string, PendingRequest>()
  for await (const batch of log.read(run, { types: ['request', 'response'] })) {
    for (const entry of batch) {
      if (entry.type === 'request') open.set(entry.requestId, entry)
      else if (entry.type === 'response') open.delete(entry.requestId)
    }
  }
  return [...open.values()]
}

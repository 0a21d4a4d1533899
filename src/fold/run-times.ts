/**
 * From when a run counts: its own start. A fork has the log of another run in front of it, with that one's times: neither its duration nor its
 * first token is counted from there. Lists, views, comparisons, statistics and metrics all ask here.
 */
import type { EntryOf } from '../part/entry.ts'

/** Epoch ms. */
export function startOf({ timestamp, forkedFrom }: EntryOf<'run-start'>): number {
  return forkedFrom?.at ?? timestamp
}

/** Of a fork: the `seq` of the last entry that it shares. */
export function sharedTo({ forkedFrom }: EntryOf<'run-start'>): number {
  return forkedFrom?.seq ?? 0
}

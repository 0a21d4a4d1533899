/** Where the answer for one request ends although its run goes on: another request has brought a message, and reads on from there. */
import type { Entry, EntryOf } from '../part/entry.ts'

/**
 * `end`: the reader's answer ends at this message. `begin`: its answer begins there. Undefined: the message is only shown, if the protocol can.
 * `resumedAt`: see `WireContext`.
 */
export function turnAt(entry: EntryOf<'message'>, resumedAt: number): 'end' | 'begin' | undefined {
  if (entry.turn !== true || entry.outcome !== undefined || entry.seq < resumedAt) return undefined
  return entry.seq === resumedAt ? 'begin' : 'end'
}

/** A message as clients are shown it. `waited` in ms. */
export interface ShownMessage {
  id: string
  content: EntryOf<'message'>['content']
  protocol: string
  by?: EntryOf<'message'>['by']
  waited: number
  outcome?: EntryOf<'message'>['outcome']
  runId?: string
}

export function shownMessage({
  id,
  content,
  protocol,
  by,
  sentAt,
  timestamp,
  outcome,
  runId,
}: EntryOf<'message'>): ShownMessage {
  return {
    id,
    content,
    protocol,
    ...(by !== undefined && { by }),
    waited: Math.max(0, timestamp - sentAt),
    ...(outcome !== undefined && { outcome }),
    ...(runId !== undefined && { runId }),
  }
}

/** The id of the message with which a run's answer goes on behind a message of the user. */
export function turnMessageId(runId: string, { seq }: Entry): string {
  return `${runId}.${seq}`
}

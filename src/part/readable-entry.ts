/**
 * Stored entries for readers. Another process, another version or another hand may have written them: what does not fit its type is
 * replaced, so that one entry harms neither the readers of its run nor those of all runs. Entries on their way into a log are not looked at.
 */
import { entryFault } from './check-entry.ts'
import { lastTime } from './entry-shapes.ts'
import { isDelta, withSafeValues, type DeltaEntry, type Entry, type EntryOf } from './entry.ts'
import { noUsage } from './usage.ts'

/** The code of the warning, and of the error, in the place of an entry that cannot be read. */
export const unreadableEntry = 'unreadable-entry'

/** `before`: the entry before it, if it is known. Never throws. */
export function toReadable(stored: unknown, before?: Entry): Entry {
  if (!isObject(stored)) return standIn({}, 'it is not an object', before)
  if (isPlain(stored as unknown as Entry)) return stored as unknown as Entry
  const entry = withSafeValues(stored as unknown as Entry)
  const fault = entryFault(entry, false)
  return fault === undefined ? entry : standIn(stored, fault, before)
}

/** Whether an entry is a delta as nearly all are: looked at without a call. */
function isPlain(entry: Entry): entry is DeltaEntry {
  return (
    isDelta(entry) &&
    typeof entry.delta === 'string' &&
    typeof entry.id === 'string' &&
    typeof entry.step === 'string' &&
    Number.isSafeInteger(entry.seq) &&
    entry.timestamp >= 0 &&
    entry.timestamp <= lastTime &&
    entry.firstSeq === undefined &&
    entry.providerMetadata === undefined
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The first and the last entry of a run stay what they are: without them nobody knows where it begins, or that it has ended. */
function standIn(given: Record<string, unknown>, fault: string, before: Entry | undefined): Entry {
  const { seq, timestamp, step, type } = given
  const at = {
    seq: Number.isSafeInteger(seq) ? (seq as number) : (before?.seq ?? 0) + 1,
    timestamp: isTime(timestamp) ? timestamp : (before?.timestamp ?? 0),
    step: type === 'run-start' || type === 'run-end' || typeof step !== 'string' ? '' : step.slice(0, 256),
  }
  const message = `This entry is not as its type says: ${fault}.`
  if (type === 'run-end') {
    const error = { code: unreadableEntry, message }
    return { ...at, type, outcome: 'interrupted', usage: noUsage, error }
  }
  if (type !== 'run-start') return { ...at, type: 'warning', code: unreadableEntry, message }
  const start: EntryOf<'run-start'> = { ...at, type, ...unknownStart, labels: { [unreadableEntry]: message } }
  for (const key of ['runId', 'agent', 'pipeline', 'threadId', 'protocol'] as const) {
    const value = given[key]
    if (typeof value === 'string') start[key] = value
  }
  return start
}

const unknownStart = { runId: '', agent: '', pipeline: '', threadId: '', protocol: '', input: {} }

function isTime(value: unknown): value is number {
  return typeof value === 'number' && entryFault({ seq: 1, timestamp: value, step: '', type: '' }, false) === undefined
}

/**
 * Stored entries for readers. Another process, another version or another hand may have written them: what does not fit its type is
 * replaced, so that one entry harms neither the readers of its run nor those of all runs. Entries on their way into a log are not looked at.
 */
import { lastTime, lookAt, time } from './entry-shapes.ts'
import { isDelta, withSafeValues, type DeltaEntry, type Entry, type EntryOf } from './entry.ts'
import { noUsage } from './usage.ts'
import { didNotFit, wholeFrom } from './shape.ts'

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

/** The first and the last entry of a run stay unchanged: they mark its beginning and its end. */
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

/* Checks entries that come from outside: from a file, a request, another process, an older version. */

/** Steps may be nested so deep. Those of real runs do not come near it. */
export const mostNested = 256
/** Characters of a path. */
const longestPath = 16_384
/** Of the last entry: more than any run has, and few enough to count with. */
const seqs = wholeFrom(1, 1_000_000_000)

/**
 * Returns the fault of an entry, or undefined: its envelope and every field that its type has. Other fields may be there. `isStrict`: it must
 * be of a type of this version. Otherwise, because a newer process may have stored it, types and words that are unknown are fine.
 */
export function entryFault(value: unknown, isStrict = true): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'it is not an object'
  const { seq, firstSeq, timestamp, step, type } = value as Record<string, unknown>
  const envelope =
    named('seq', seqs(seq, isStrict)) ??
    (firstSeq === undefined ? undefined : named('firstSeq', seqs(firstSeq, isStrict))) ??
    named('timestamp', time(timestamp, isStrict)) ??
    named('step', pathFault(step)) ??
    (typeof type === 'string' ? undefined : named('type', didNotFit('a string', type)))
  if (envelope !== undefined) return envelope
  if (step === '' && type === 'step-start') return named('step', ' must be the path of the step')
  const look = lookAt(type as string)
  if (look === undefined) return isStrict ? named('type', didNotFit('one that this version knows', type)) : undefined
  return look(value, isStrict)?.replace(/^\./u, '')
}

function named(name: string, fault: string | undefined): string | undefined {
  return fault && name + fault
}

function pathFault(path: unknown): string | undefined {
  if (typeof path !== 'string') return didNotFit('a string', path)
  if (path === '') return undefined
  if (path.length > longestPath) return ` must have at most ${longestPath} characters`
  if (/[\p{Cc}\p{Cs}]/u.test(path)) return ' must not contain control characters'
  let depth = 1
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) depth++
  return depth > mostNested ? ` must not be nested deeper than ${mostNested} steps` : undefined
}

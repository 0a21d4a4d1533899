/** Checks entries that come from outside: from a file, a request, another process, an older version. */
import { lookAt, time } from './entry-shapes.ts'
import { didNotFit, wholeFrom } from './shape.ts'

/** Steps may be nested so deep. Those of real runs do not come near it. */
export const mostNested = 256
/** Characters of a path. */
const longestPath = 16_384
/** Of the last entry: more than any run has, and few enough to count with. */
const seqs = wholeFrom(1, 1_000_000_000)

/**
 * Returns what is wrong with an entry, or undefined: its envelope and every field that its type has. Other fields may be there. `isStrict`: it must
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

/** Checks query parameters. Unknown ones are refused, not ignored. */
import { MillraceError } from '../../part/error.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { ownValue } from '../../part/own-value.ts'

/** The parameters of a URL. `longest`: the maximum length of each known one. Throws `bad-input`. */
export function readQuery<T extends string>(url: URL, longest: Record<T, number>): Partial<Record<T, string>> {
  const found = new Map<string, string>()
  const known = Object.keys(longest)
  for (const name of new Set(url.searchParams.keys())) {
    const most = ownValue<number>(longest, name)
    if (most === undefined) {
      const list = known.join(', ')
      const shown = name.slice(0, 60)
      throw new MillraceError('bad-input', `Unknown parameter "${shown}"${didYouMean(shown, known)}. Known: ${list}.`)
    }
    const [value = '', ...more] = url.searchParams.getAll(name)
    if (more.length > 0) throw bad(name, 'given once')
    if (value.length > most) throw bad(name, `at most ${most} characters long`)
    found.set(name, value)
  }
  return Object.fromEntries(found) as Partial<Record<T, string>>
}

export function wholeNumber(text: string, name: string, min: number, max: number): number {
  const value = Number(text)
  if (!/^\d+$/u.test(text) || value < min || value > max) throw bad(name, `a whole number from ${min} to ${max}`)
  return value
}

export function bad(name: string, what: string): MillraceError {
  return new MillraceError('bad-input', `${name} must be ${what}.`)
}

/** Epoch ms or ISO 8601. */
export function toTime(text: string, name: string): number {
  const time = /^\d+$/u.test(text) ? Number(text) : Date.parse(text)
  if (Number.isFinite(time)) return time
  throw bad(name, 'a time: epoch ms, or ISO 8601 such as 2026-01-31T00:00:00Z')
}

/**
 * The media type of `types` that the request prefers in `Accept`: by weight, then `first`, then by the order of the header. Undefined if none is
 * listed. Wildcards are ignored, and a weight of 0 excludes a type.
 */
export function preferredType<T extends string>({ headers }: Request, types: readonly T[], first?: T): T | undefined {
  const accept = headers.get('accept')
  if (accept === null || accept === '*/*') return undefined
  let best: T | undefined
  let most = 0
  for (const range of accept.toLowerCase().split(',')) {
    const [name, ...parameters] = range.split(';').map((word) => word.trim())
    const type = types.find((each) => each === name)
    const weight = parameters.find((each) => each.startsWith('q='))?.slice(2)
    const wanted = weight === undefined ? 1 : Number(weight)
    if (type === undefined || !(wanted > most || (wanted === most && wanted > 0 && type === first))) continue
    best = type
    most = wanted
  }
  return best
}

/** Bounds of a filter in the address: `0.01..0.5`, `10s..`, `..2m`. */
export interface Range {
  /** A number; or what was written, if it is none. */
  min: string | number | undefined
  max: string | number | undefined
}

type Kind = 'usd' | 'time'

const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

export function readRange(text: string | undefined, kind: Kind): Range {
  const [min, max] = text?.split('..') ?? []
  return { min: toNumber(min, kind), max: toNumber(max, kind) }
}

/** `undefined`: no bounds. */
export function writeRange({ min, max }: Range, kind: Kind): string | undefined {
  return min === undefined && max === undefined ? undefined : `${toText(min, kind)}..${toText(max, kind)}`
}

/** `over 10 s`, `$0.01 to $0.5`. */
export function sayRange({ min, max }: Range, kind: Kind): string {
  const say = (value: string | number | undefined) =>
    kind === 'usd' ? `$${value}` : toText(value, kind).replace(/([a-z]+)$/u, ' $1')
  if (min === undefined) return `up to ${say(max)}`
  return max === undefined ? `${say(min)} or more` : `${say(min)} to ${say(max)}`
}

function toNumber(text: string | undefined, kind: Kind): string | number | undefined {
  if (text === undefined || text === '') return undefined
  const found = (kind === 'usd' ? /^(\d+(?:\.\d+)?)$/u : /^(\d+(?:\.\d+)?)(ms|s|m|h)$/u).exec(text)
  if (found === null) return text
  return kind === 'usd' ? Number(found[1]) : Math.round(Number(found[1]) * units[found[2]!]!)
}

function toText(value: string | number | undefined, kind: Kind): string {
  if (value === undefined || typeof value === 'string' || kind === 'usd') return String(value ?? '')
  const unit = (['h', 'm', 's'] as const).find((each) => value >= units[each]! && value % (units[each]! / 10) === 0)
  return unit === undefined ? `${value}ms` : `${value / units[unit]!}${unit}`
}

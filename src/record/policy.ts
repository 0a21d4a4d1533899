/** How long runs are kept, when their deltas are merged, and when they go to the archive. */

/** Which ended runs `millrace serve` deletes. `none` sets no limit. */
export interface RetentionConfig {
  /** Delete a run when its conversation has not been used for so long: `30d`, `12h`, or ms. Default `30d`. */
  maxAge?: string | number
  /** Delete the oldest runs when the data folder holds more: `2gb`, `500mb`, or bytes. Default `2gb`. */
  maxBytes?: string | number
}

/** The part of a config that keeps the store small. */
export interface UpkeepConfig {
  compactAfter?: string | number
  archiveAfter?: string | number
  retention?: RetentionConfig
}

/** In ms and bytes; an absent limit does not apply. */
export interface Policy {
  compactAfter?: number
  archiveAfter?: number
  maxAge?: number
  maxBytes?: number
}

export const ageWords = 'a duration such as "30d", "12h" or "90m", or a number of ms'
export const sizeWords = 'a size such as "2gb" or "500mb", or a number of bytes'

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const
const sizes = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3, tb: 1024 ** 4 } as const

/** In ms; undefined if it is no duration. */
export function ageOf(value: string | number): number | undefined {
  return amountOf(value, units, 'ms')
}

/** In bytes; undefined if it is no size. */
export function sizeOf(value: string | number): number | undefined {
  return amountOf(value, sizes, 'b')
}

function amountOf(value: string | number, known: Record<string, number>, unit: string): number | undefined {
  const [, digits, name] = /^(\d+(?:\.\d+)?) ?([a-z]*)$/iu.exec(String(value).trim()) ?? []
  const factor = name === undefined ? undefined : new Map(Object.entries(known)).get(name.toLowerCase() || unit)
  const amount = Math.round(Number(digits) * (factor ?? Number.NaN))
  return Number.isSafeInteger(amount) ? amount : undefined
}

/** The policy of a config that was checked. `shared`: for a store that many processes share, in memory. */
export function policyOf(config: UpkeepConfig = {}, { shared = false } = {}): Policy {
  const { compactAfter = shared ? '10m' : '1d', archiveAfter = '1h', retention = {} } = config
  const { maxAge = '30d', maxBytes = '2gb' } = retention
  const policy: Policy = {}
  const [after, archived, age, bytes] = [ageOf(compactAfter), ageOf(archiveAfter), ageOf(maxAge), sizeOf(maxBytes)]
  if (after !== undefined) policy.compactAfter = after
  if (archived !== undefined && shared) policy.archiveAfter = archived
  if (age !== undefined) policy.maxAge = age
  if (bytes !== undefined) policy.maxBytes = bytes
  return policy
}

/** `30 days`, `12 hours`. */
export function sayAge(ms: number): string {
  for (const [name, unit] of [
    ['day', units.d],
    ['hour', units.h],
    ['minute', units.m],
    ['second', units.s],
  ] as const) {
    if (ms >= unit && ms % unit === 0) return `${ms / unit} ${name}${ms === unit ? '' : 's'}`
  }
  return `${ms} ms`
}

/** `2 GB`, `1.5 MB`. */
export function saySize(bytes: number): string {
  for (const [name, unit] of [
    ['TB', sizes.tb],
    ['GB', sizes.gb],
    ['MB', sizes.mb],
    ['KB', sizes.kb],
  ] as const) {
    if (bytes >= unit) return `${Math.round((bytes / unit) * 10) / 10} ${name}`
  }
  return `${bytes} bytes`
}

/** The policy in one line. */
export function sayPolicy({ compactAfter, archiveAfter, maxAge, maxBytes }: Policy, hasArchive = false): string {
  const limits = [
    ...(maxAge === undefined ? [] : [`${sayAge(maxAge)} after the last use of their conversation`]),
    ...(maxBytes === undefined ? [] : [`the oldest first when there are more than ${saySize(maxBytes)}`]),
  ]
  const merged = compactAfter === undefined ? '' : `; deltas are merged ${sayAge(compactAfter)} after a run's end`
  const archiving =
    archiveAfter === undefined || !hasArchive ? '' : `; runs go to the archive ${sayAge(archiveAfter)} after their end`
  return `${limits.length === 0 ? 'runs are kept forever' : `ended runs are deleted ${limits.join(', ')}`}${merged}${archiving}`
}

/** Building blocks of the schemas. Every scalar arrives as a string; each block converts it to its type or returns the message. */
import { z } from 'zod'
import { didYouMean } from './nearest.ts'

const day = 86_400_000
const units = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', day],
])
// setTimeout is limited to 31 bits: longer timers fire at once.
const longestDuration = 24 * day

export const text = z.string('must be a string')
/** A prompt: a string, or a file whose text inline-files.ts inserts before the schema is applied. */
export const prompt = text.meta({ yaml: 'prompt' })
export const name = text.min(1, 'is empty; give it a value or remove the key')
export const flag = z.preprocess(
  (value) => (value === 'true' ? true : value === 'false' ? false : value),
  z.boolean('must be true or false'),
)
/** A name defined outside the file: names.ts checks it, editors suggest it. */
export type NameKind = 'tools' | 'callbacks' | 'agents' | 'mcpServers' | 'models'
export function nameOf(kind: NameKind) {
  return name.meta({ names: kind })
}

const numeral = /^[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/

export function toNumber(value: unknown): unknown {
  return typeof value === 'string' && numeral.test(value) ? Number(value) : value
}
export function number(min: number, max = Infinity) {
  const from = min === -Infinity ? '' : ` from ${min}`
  const words = `must be a number${from}${max === Infinity ? '' : ` to ${max}`}`
  return z.preprocess(toNumber, z.number(words).min(min, words).max(max, words))
}
export function integer(min: number, max = Number.MAX_SAFE_INTEGER) {
  const words = `must be a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? '' : ` to ${max}`}`
  return z.preprocess(toNumber, z.int(words).min(min, words).max(max, words))
}

const durationWords = 'must be a duration such as 500ms, 30s, 5m or a number of ms, at most 24d'
export function duration(min: number, max = longestDuration) {
  const words = max === longestDuration ? durationWords : durationWords.replace('24d', `${max / 1000}s`)
  return z.preprocess(toMilliseconds, z.number(words).min(min, words).max(max, words)).meta({ yaml: 'duration' })
}

const sizes = new Map([
  ['b', 1],
  ['kb', 1024],
  ['mb', 1024 ** 2],
  ['gb', 1024 ** 3],
])
/** Bytes: 65536, 64kb, 32mb. */
export function size(min: number, max: number) {
  const words = `must be a size such as 64mb, from ${min / 1024 ** 2}mb to ${max / 1024 ** 2}mb`
  return z.preprocess(toBytes, z.number(words).min(min, words).max(max, words)).meta({ yaml: 'size' })
}
function toBytes(value: unknown): unknown {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*(b|kb|mb|gb)?$/iu.exec(value) : null
  return match ? Math.round(Number(match[1]) * sizes.get((match[2] ?? 'b').toLowerCase())!) : value
}
/** Tokens: 200000, 200k, 1m. */
export function tokens(min: number) {
  const words = `must be a number of tokens such as 20000, 20k or 1m, from ${min}`
  return z.preprocess(toTokens, z.number(words).min(min, words).max(1e9, words)).meta({ yaml: 'tokens' })
}
const multiples = new Map([
  ['k', 1000],
  ['m', 1_000_000],
])
function toTokens(value: unknown): unknown {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*([km])?$/iu.exec(value) : null
  const unit = multiples.get((match?.[2] ?? '').toLowerCase()) ?? 1
  return match ? Math.round(Number(match[1]) * unit) : value
}
/** A share, written in percent. The value is from 0 to 1. */
export function percent(min: number, max: number) {
  const words = `must be a share from ${min}% to ${max}%, or none`
  return z
    .preprocess(
      toShare,
      z
        .number(words)
        .min(min / 100, words)
        .max(max / 100, words),
    )
    .meta({ yaml: 'percent' })
}
function toShare(value: unknown): unknown {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*%$/u.exec(value) : null
  return match ? Number(match[1]) / 100 : value
}
const charactersWords = 'must be a number of characters such as 30k, from 4k, or none'
/** Characters: 30000, 30k. `none`: no limit. */
export function characters() {
  const most = z
    .preprocess(toCharacters, z.int(charactersWords).min(4000, charactersWords))
    .meta({ yaml: 'characters' })
  return z.union([most, z.literal('none')], charactersWords)
}
function toCharacters(value: unknown): unknown {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*(k)?$/iu.exec(value) : null
  return match ? Math.round(Number(match[1]) * (match[2] === undefined ? 1 : 1000)) : value
}
/** A duration with a default, which `none` disables. */
export function timeLimit() {
  return z.union([duration(1), z.literal('none')], `${durationWords}, or none`)
}
function toMilliseconds(value: unknown): unknown {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/.exec(value) : null
  return match ? Math.round(Number(match[1]) * units.get(match[2] ?? 'ms')!) : value
}

export function oneOf<const T extends readonly [string, ...string[]]>(values: T) {
  return z.enum(values, {
    error: ({ input }) =>
      `must be one of ${values.join(', ')}${typeof input === 'string' ? didYouMean(input, values) : ''}`,
  })
}

// For unknown keys the message lists the known ones, from which check.ts builds the final message.
export function map<T extends z.ZodRawShape>(shape: T) {
  const keys = Object.keys(shape).join(', ')
  return z.strictObject(shape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? keys : `must be a map with the keys ${keys}`),
  })
}
export function list<T extends z.ZodType>(item: T) {
  return z.array(item, 'must be a list (lines that begin with "- ", or [a, b])')
}

/** A value that another reader checks; JSON Schema only refers to its definition. */
export function later(definition: 'step' | 'shape' | 'shapes') {
  return z.unknown().meta({ ref: definition })
}

/** Sets a default that JSON Schema also contains: zod omits `default` after a conversion. */
export function preset<T extends z.ZodType<V>, V>(schema: T, value: V, description: string) {
  return schema.default(value as z.core.util.NoUndefined<z.output<T>>).meta({ description, preset: value })
}

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A value against a {@link ValueSchema}: what it lacks is filled in where there is a default, what is wrong is said at once. */
import { MillraceError } from '../part/error.ts'
import { equal } from './equal.ts'
import { didYouMean, listNames } from './nearest.ts'
import type { ValueSchema } from './value-schema.ts'

/**
 * `$input` as a pipeline declares it (`pipeline.input`), with its defaults; the value itself is left as it is. Throws
 * `bad-input` (400) with every fault and its path, at most 20 of them. Nothing is converted: `"3"` is no integer.
 */
export function checkInput(schema: ValueSchema | undefined, value: unknown): Record<string, unknown> {
  const { value: filled, faults } = checkValue({ ...schema, type: 'object' }, value, '$input')
  if (faults.length === 0) return filled as Record<string, unknown>
  throw new MillraceError('bad-input', `The input does not fit: ${firstFaults(faults)}.`, { status: 400 })
}

/** At most 20 of them, as a sentence goes on. */
export function firstFaults(faults: readonly string[]): string {
  const rest = faults.length - 20
  const more = rest > 0 ? `; and ${faults.length >= enough ? 'many' : rest} more` : ''
  return `${faults.slice(0, 20).join('; ')}${more}`
}

/** A value may hold a fault in each of its bytes: behind so many it is not looked at any more. */
const enough = 1000

/** Every fault begins with the path that it is about; there are at most 1000. */
export function checkValue(schema: ValueSchema, value: unknown, path: string): { value: unknown; faults: string[] } {
  const faults: string[] = []
  return { value: fill(schema, value, path, faults), faults }
}

function fill(schema: ValueSchema, value: unknown, path: string, faults: string[]): unknown {
  const { type, anyOf } = schema
  if (faults.length >= enough) return value
  if (type !== undefined && !isOfType(value, type)) {
    faults.push(`${path} must be ${article(type)}, not ${nameOf(value)}${meaning(schema)}`)
    return value
  }
  if (schema.enum !== undefined && !schema.enum.some((each) => equal(each, value))) {
    const names = schema.enum.map((each) => (typeof each === 'string' ? each : JSON.stringify(each)))
    const hint = typeof value === 'string' ? didYouMean(value, names) : ''
    faults.push(`${path} must be one of ${listNames(names)}, not ${nameOf(value)}${hint}`)
    return value
  }
  const chosen = anyOf === undefined ? value : fillAny(anyOf, value, path, faults)
  if (typeof chosen === 'string') checkText(schema, chosen, path, faults)
  else if (typeof chosen === 'number') {
    const { minimum = -Infinity, maximum = Infinity } = schema
    if (chosen < minimum) faults.push(`${path} must be at least ${minimum}, not ${chosen}`)
    if (chosen > maximum) faults.push(`${path} must be at most ${maximum}, not ${chosen}`)
  } else if (Array.isArray(chosen)) return fillList(schema, chosen, path, faults)
  else if (typeof chosen === 'object' && chosen !== null) return fillMap(schema, chosen, path, faults)
  return chosen
}

function fillAny(forms: readonly ValueSchema[], value: unknown, path: string, faults: string[]): unknown {
  for (const form of forms) {
    const attempt = checkValue(form, value, path)
    if (attempt.faults.length === 0) return attempt.value
  }
  const types = forms.map(({ type }) => type ?? 'another form')
  faults.push(`${path} fits none of its forms: ${types.join(', ')}`)
  return value
}

function checkText(
  { minLength = 0, maxLength = Infinity, pattern }: ValueSchema,
  text: string,
  path: string,
  faults: string[],
) {
  if (text.length < minLength) {
    faults.push(
      minLength === 1 ? `${path} is empty` : `${path} must have at least ${minLength} characters, not ${text.length}`,
    )
  }
  if (text.length > maxLength) faults.push(`${path} must have at most ${maxLength} characters, not ${text.length}`)
  else if (pattern !== undefined && !new RegExp(pattern, 'u').test(text)) faults.push(`${path} must match ${pattern}`)
}

function fillList(schema: ValueSchema, value: unknown[], path: string, faults: string[]): unknown[] {
  const { items, minItems = 0, maxItems = Infinity } = schema
  if (value.length < minItems) faults.push(`${path} must have at least ${minItems} items, not ${value.length}`)
  if (value.length > maxItems) {
    faults.push(`${path} must have at most ${maxItems} items, not ${value.length}`)
    return value
  }
  return items === undefined ? value : value.map((item, i) => fill(items, item, `${path}.${i}`, faults))
}

function fillMap(schema: ValueSchema, value: object, path: string, faults: string[]): object {
  const { properties = {}, required = [], additionalProperties = true } = schema
  const entries = new Map<string, unknown>(Object.entries(value))
  for (const [key, item] of entries) {
    if (Object.hasOwn(properties, key)) continue
    if (faults.length >= enough) break
    if (additionalProperties === false) {
      const known = Object.keys(properties)
      faults.push(`${path}.${key} is unknown${didYouMean(key, known)}; known keys: ${listNames(known)}`)
    } else if (additionalProperties !== true) {
      entries.set(key, fill(additionalProperties, item, `${path}.${key}`, faults))
    }
  }
  for (const [key, property] of Object.entries(properties)) {
    if (faults.length >= enough) break
    const item = entries.get(key)
    if (item !== undefined) entries.set(key, fill(property, item, `${path}.${key}`, faults))
    else if (property.default !== undefined) entries.set(key, structuredClone(property.default))
    else if (required.includes(key)) {
      const what = property.type === undefined ? '' : `, ${article(property.type)}`
      faults.push(`${path}.${key} is missing${what}${meaning(property)}`)
    }
  }
  return Object.fromEntries(entries)
}

function isOfType(value: unknown, type: NonNullable<ValueSchema['type']>): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value)
    case 'array':
      return Array.isArray(value)
    case 'null':
      return value === null
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    default:
      return typeof value === type
  }
}

function article(type: string): string {
  return type === 'null' ? 'null' : `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`
}

function meaning({ description }: ValueSchema): string {
  return description === undefined ? '' : ` (${description})`
}

function nameOf(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value) ?? String(value)
  // Not a piece of it: a secret that is cut is found by nobody.
  return text.length > 40 ? `a text of ${String(value).length} characters` : text
}

/**
 * A value against a JSON Schema that a client sent, in a bounded number of steps and without its patterns, so that no schema
 * can hold up the server. What is not known here (patterns, formats, conditions) is the model's to follow.
 */
import { equal } from '../pipeline/equal.ts'

type Schema = Record<string, unknown>

/** Comparisons for one value, and how deep they go; what is left then counts as fitting. */
const mostSteps = 100_000
const deepest = 1000
const mostFaults = 10

/** What does not fit, a line each; empty when all does, as far as is looked. */
export function schemaFaults(root: Schema, value: unknown): string[] {
  let steps = 0

  function faultsOf(given: unknown, item: unknown, place: string, depth: number): string[] {
    if (++steps > mostSteps || depth > deepest) return []
    const below = depth + 1
    if (given === false) return [`${place} is not allowed`]
    const schema = recordOf(given)
    if (schema === undefined) return []
    if (typeof schema['$ref'] === 'string') return faultsOf(targetOf(root, schema['$ref']), item, place, below)
    const { anyOf, oneOf, allOf } = schema
    const choices = listOf(anyOf) ?? listOf(oneOf) ?? []
    const fits = choices.some((choice) => faultsOf(choice, item, place, below).length === 0)
    if (choices.length > 0 && !fits) return [`${place} fits none of what is allowed`]
    const faults = (listOf(allOf) ?? []).flatMap((each) => faultsOf(each, item, place, below))
    const types = typeof schema['type'] === 'string' ? [schema['type']] : listOf(schema['type'])
    if (types !== undefined && !types.some((type) => isOfType(item, type))) {
      return [...faults, `${place} must be ${types.join(' or ')}, not ${nameOf(item)}`]
    }
    const allowed = 'const' in schema ? [schema['const']] : listOf(schema['enum'])
    // A comparison with an object may take as long as many with a word.
    steps += (allowed?.length ?? 0) * (recordOf(item) === undefined && !Array.isArray(item) ? 1 : 1000)
    if (allowed !== undefined && steps <= mostSteps && !allowed.some((each) => equal(each, item))) {
      const words = allowed.slice(0, 20).map((each) => JSON.stringify(each))
      faults.push(`${place} must be ${words.join(' or ')}`)
    }
    if (Array.isArray(item)) {
      const items = item as unknown[]
      faults.push(...sizeFaults(schema, items.length, 'Items', `${place} has ${items.length} items`))
      items.forEach(
        (each, i) =>
          faults.length < mostFaults && faults.push(...faultsOf(schema['items'], each, `${place}[${i}]`, below)),
      )
    } else if (typeof item === 'string') {
      const characters = item.length > 10_000 ? item.length : [...item].length
      faults.push(...sizeFaults(schema, characters, 'Length', `${place} has ${characters} characters`))
    } else if (typeof item === 'number') {
      faults.push(...sizeFaults(schema, item, 'imum', `${place} is ${item}`))
    } else faults.push(...propertyFaults(schema, item, place, below))
    return faults.slice(0, mostFaults)
  }

  function propertyFaults(schema: Schema, item: unknown, place: string, depth: number): string[] {
    const fields = recordOf(item)
    if (fields === undefined) return []
    const properties = recordOf(schema['properties']) ?? {}
    const required = listOf(schema['required']) ?? []
    steps += required.length
    if (steps > mostSteps) return []
    const faults = required
      .filter((key) => typeof key === 'string' && !Object.hasOwn(fields, key))
      .map((key) => `${place}.${String(key)} is missing`)
    for (const [key, field] of Object.entries(fields)) {
      if (faults.length >= mostFaults) break
      const at = `${place}.${key}`
      if (Object.hasOwn(properties, key)) faults.push(...faultsOf(properties[key], field, at, depth))
      else if (schema['additionalProperties'] === false) {
        if (schema['patternProperties'] === undefined) faults.push(`${at} is unknown`)
      } else faults.push(...faultsOf(schema['additionalProperties'], field, at, depth))
    }
    return faults
  }

  return faultsOf(root, value, 'output', 0)
}

function sizeFaults(schema: Schema, size: number, what: 'Items' | 'Length' | 'imum', words: string): string[] {
  const least = schema[what === 'imum' ? 'minimum' : `min${what}`]
  const most = schema[what === 'imum' ? 'maximum' : `max${what}`]
  if (typeof least === 'number' && size < least) return [`${words}, at least ${least} wanted`]
  return typeof most === 'number' && size > most ? [`${words}, at most ${most} allowed`] : []
}

/** `#/$defs/name` within the schema; undefined (which fits everything) for any other. */
function targetOf(root: Schema, ref: string): unknown {
  if (ref === '#') return root
  if (!ref.startsWith('#/')) return undefined
  let at: unknown = root
  for (const name of ref.slice(2).split('/')) {
    const fields = recordOf(at)
    const key = name.replaceAll('~1', '/').replaceAll('~0', '~')
    if (fields === undefined || !Object.hasOwn(fields, key)) return undefined
    at = fields[key]
  }
  return at
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value)
    case 'object':
      return recordOf(value) !== undefined
    case 'array':
      return Array.isArray(value)
    case 'null':
      return value === null
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type
    default:
      return true
  }
}

function nameOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function recordOf(value: unknown): Schema | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : undefined
}

function listOf(value: unknown): unknown[] | undefined {
  return Array.isArray(value) ? (value as unknown[]) : undefined
}

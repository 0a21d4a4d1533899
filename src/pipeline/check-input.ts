/**
 * Checks what goes into an agent and what comes out against a {@link ValueSchema}: fills in defaults and reports all mistakes at once. Shares types, equality and patterns
 * with json-schema/validate.ts, but not the walk: that one never fills in, bounds its work, and writes its faults for models.
 */
import { MillraceError } from '../part/error.ts'
import { readJson } from '../part/json.ts'
import { equal } from '../part/equal.ts'
import { isOfType, type ValueSchema } from './value-schema.ts'
import { didYouMean, listNames, type Hint } from './nearest.ts'
import { compilePattern, fullBudget, PatternTooCostly, type PatternBudget } from './pattern/pattern.ts'

/**
 * Checks `$input` against `pipeline.input` and returns a copy with defaults filled in. Throws `bad-input` (400) with the path
 * of every fault, at most 20. Values are not converted: `"3"` is not an integer.
 */
export function checkInput(schema: ValueSchema | undefined, value: unknown): Record<string, unknown> {
  const { value: filled, faults } = checkValue({ ...schema, type: 'object' }, value, '$input')
  if (faults.length === 0) return filled as Record<string, unknown>
  throw new MillraceError('bad-input', `Invalid input: ${firstFaults(faults)}.`, { status: 400 })
}

/** Returns the value with defaults filled in; of a text that should be a map or a list, its JSON. Throws `bad-output` with the path of every fault, at most 20. */
export function checkOutput(schema: ValueSchema, value: unknown): unknown {
  const { value: filled, faults } = checkValue(schema, isJson(schema, value) ? jsonIn(value) : value, 'the value')
  if (faults.length === 0) return filled
  throw new MillraceError('bad-output', `The value of the agent does not match its "output": ${firstFaults(faults)}.`)
}

function isJson({ type }: ValueSchema, value: unknown): value is string {
  return typeof value === 'string' && (type === 'object' || type === 'array')
}

/** The text itself if it has no JSON: then the fault names its type. */
function jsonIn(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return text
  }
}

/** Joins the first 20 faults for use inside a sentence. */
export function firstFaults(faults: readonly string[]): string {
  const rest = faults.length - maxFaults
  const more = rest > 0 ? `; and ${faults.length >= enough ? 'many' : rest} more` : ''
  return `${faults.slice(0, maxFaults).join('; ')}${more}`
}

/** How many faults are listed. */
const maxFaults = 20

/** Checking stops after this many faults: a value may have one in every byte. */
const enough = 1000

/** Every fault starts with its path; there are at most 1000. */
export function checkValue(schema: ValueSchema, value: unknown, path: string): { value: unknown; faults: string[] } {
  const faults: string[] = []
  // Suggestions are expensive, and only the first faults are listed.
  const add: Faults['add'] = (message) => void faults.push(message(faults.length < maxFaults ? didYouMean : () => ''))
  const budget = { left: fullBudget }
  return { value: fill(schema, value, path, { add, isFull: () => faults.length >= enough, budget }), faults }
}

interface Faults {
  add(message: (hint: Hint) => string): void
  isFull(): boolean
  /** Shared by all patterns and strings of the value. */
  budget: PatternBudget
}

function fill(schema: ValueSchema, value: unknown, path: string, faults: Faults): unknown {
  const { type, anyOf } = schema
  if (faults.isFull()) return value
  if (type !== undefined && !isOfType(value, type)) {
    faults.add(() => `${path} must be ${article(type)}, not ${nameOf(value)}${meaning(schema)}`)
    return value
  }
  if (schema.enum !== undefined && !isAmong(schema.enum, value)) {
    const { enum: values } = schema
    faults.add((hint) => {
      const names = values.map((each) => (typeof each === 'string' ? each : JSON.stringify(each)))
      const meant = typeof value === 'string' ? hint(value, names) : ''
      return `${path} must be one of ${listNames(names)}, not ${nameOf(value)}${meant}`
    })
    return value
  }
  const chosen = anyOf === undefined ? value : fillAny(anyOf, value, path, faults)
  if (typeof chosen === 'string') checkText(schema, chosen, path, faults)
  else if (typeof chosen === 'number') {
    const { minimum = -Infinity, maximum = Infinity } = schema
    if (chosen < minimum) faults.add(() => `${path} must be at least ${minimum}, not ${chosen}`)
    if (chosen > maximum) faults.add(() => `${path} must be at most ${maximum}, not ${chosen}`)
  } else if (Array.isArray(chosen)) return fillList(schema, chosen, path, faults)
  else if (typeof chosen === 'object' && chosen !== null) return fillMap(schema, chosen, path, faults)
  return chosen
}

function isAmong(values: readonly unknown[], value: unknown): boolean {
  if (values.includes(value)) return true
  return typeof value === 'object' && value !== null && values.some((each) => equal(each, value))
}

function fillAny(forms: readonly ValueSchema[], value: unknown, path: string, faults: Faults): unknown {
  for (const form of forms) {
    // The faults of an alternative are not reported: the first one rules it out.
    let fits = true
    const filled = fill(form, value, path, { add: () => (fits = false), isFull: () => !fits, budget: faults.budget })
    if (fits) return filled
  }
  const types = forms.map(({ type }) => type ?? 'any type')
  faults.add(() => `${path} matches none of the allowed schemas: ${types.join(', ')}`)
  return value
}

function checkText(
  { minLength = 0, maxLength = Infinity, pattern }: ValueSchema,
  text: string,
  path: string,
  faults: Faults,
) {
  if (text.length < minLength) {
    faults.add(() =>
      minLength === 1 ? `${path} is empty` : `${path} must have at least ${minLength} characters, not ${text.length}`,
    )
  }
  if (text.length > maxLength) faults.add(() => `${path} must have at most ${maxLength} characters, not ${text.length}`)
  else if (pattern !== undefined) {
    try {
      if (!compilePattern(pattern).test(text, faults.budget)) faults.add(() => `${path} must match ${pattern}`)
    } catch (error) {
      if (!(error instanceof PatternTooCostly)) throw error
      faults.add(() => `${path} is too long to be checked against ${pattern}`)
    }
  }
}

function fillList(schema: ValueSchema, value: unknown[], path: string, faults: Faults): unknown[] {
  const { items, minItems = 0, maxItems = Infinity } = schema
  if (value.length < minItems) faults.add(() => `${path} must have at least ${minItems} items, not ${value.length}`)
  if (value.length > maxItems) {
    faults.add(() => `${path} must have at most ${maxItems} items, not ${value.length}`)
    return value
  }
  return items === undefined ? value : value.map((item, i) => fill(items, item, `${path}.${i}`, faults))
}

function fillMap(schema: ValueSchema, value: object, path: string, faults: Faults): object {
  const { properties = {}, required = [], additionalProperties = true } = schema
  const entries = new Map<string, unknown>(Object.entries(value))
  for (const [key, item] of entries) {
    if (Object.hasOwn(properties, key)) continue
    if (faults.isFull()) break
    if (additionalProperties === false) {
      const known = Object.keys(properties)
      faults.add((hint) => `${path}.${key} is unknown${hint(key, known)}; known keys: ${listNames(known)}`)
    } else if (additionalProperties !== true) {
      entries.set(key, fill(additionalProperties, item, `${path}.${key}`, faults))
    }
  }
  for (const [key, property] of Object.entries(properties)) {
    if (faults.isFull()) break
    const item = entries.get(key)
    if (item !== undefined) entries.set(key, fill(property, item, `${path}.${key}`, faults))
    else if (property.default !== undefined) entries.set(key, structuredClone(property.default))
    else if (required.includes(key)) {
      const what = property.type === undefined ? '' : `: expected ${article(property.type)}`
      faults.add(() => `${path}.${key} is missing${what}${meaning(property)}`)
    }
  }
  return Object.fromEntries(entries)
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
  // Never a part of it: redaction would not find a truncated secret.
  return text.length > 40 ? `a string of ${String(value).length} characters` : text
}

/**
 * Validates a value against an untrusted JSON Schema. The schema is interpreted, never compiled to code. Work and depth are
 * bounded, so that no schema or value can block the process. Ours and not ../check-input.ts, which trusts its schema, fills in
 * defaults and writes its faults for people; not Ajv or zod, which compile a schema to code or run its patterns unbounded.
 *
 * Drafts 4 to 2020-12. Not enforced: `format`, `unevaluatedProperties`, `unevaluatedItems`, `$dynamicRef`, a `$ref` out of the
 * document, and a `pattern` that cannot be matched in linear time (`unsupportedPatterns` names those).
 */
import { equal } from '../../part/equal.ts'
import { isOfType } from '../value-schema.ts'
import { compilePattern, PatternError, PatternTooCostly, fullBudget, type PatternBudget } from '../pattern/pattern.ts'
import { isObject, typeName, type Keywords } from './keywords.ts'

/** Returns up to 20 faults, each with its path (`a.0.b: …`); empty if the value is valid. Never throws. */
export function validate(schema: unknown, value: unknown): string[] {
  const faults: string[] = []
  try {
    check(schema, value, '', { root: schema, faults, work: createWork() })
  } catch (error) {
    if (!(error instanceof TooMuchWork) && !(error instanceof PatternTooCostly)) throw error
    faults.push(tooMuchWork)
  }
  return faults.slice(0, mostFaults)
}

const mostFaults = 20

/** Reported when the limit on work is exceeded. */
export const tooMuchWork = 'the value or its schema is too complex to validate'

interface Checking {
  readonly root: unknown
  readonly faults: string[]
  readonly work: WorkBudget
}

function check(schema: unknown, value: unknown, path: string, checking: Checking): void {
  const { faults, work } = checking
  if (faults.length >= mostFaults) return
  if (schema === false) return add(checking, path, 'is not allowed')
  if (!isObject(schema)) return
  work.enter()
  // Safe without `Object.hasOwn`: no keyword is a property of `Object.prototype`.
  const keywords: Keywords = schema
  if (typeof keywords.$ref === 'string')
    check(resolveReference(checking.root, keywords.$ref, work), value, path, checking)
  checkAny(keywords, value, path, checking)
  if (typeof value === 'string') checkText(keywords, value, path, checking)
  else if (typeof value === 'number') checkNumber(keywords, value, path, checking)
  else if (Array.isArray(value)) checkList(keywords, value, path, checking)
  else if (isObject(value)) checkMap(keywords, value, path, checking)
  checkCombined(keywords, value, path, checking)
  work.leave()
}

function add({ faults }: Checking, path: string, what: string): void {
  faults.push(path === '' ? what : `${path}: ${what}`)
}

function fits(schema: unknown, value: unknown, { root, work }: Checking): boolean {
  const faults: string[] = []
  check(schema, value, '', { root, faults, work })
  return faults.length === 0
}

function checkAny(
  { type, enum: values, const: only }: Keywords,
  value: unknown,
  path: string,
  checking: Checking,
): void {
  if (type !== undefined) {
    const types = [type].flat()
    if (!types.some((each) => isOfType(value, each))) {
      add(checking, path, `must be ${types.map(String).join(' or ')}, not ${typeName(value)}`)
    }
  }
  if (Array.isArray(values)) {
    checking.work.spend(values.length)
    if (!values.some((each) => equal(each, value))) add(checking, path, `must be one of ${listed(values)}`)
  }
  if (only !== undefined && !equal(only, value)) add(checking, path, 'is not the allowed value')
}

/** The allowed values as a model reads them: the short ones, at most 20. */
function listed(values: readonly unknown[]): string {
  const short = values.filter((value) => typeof value !== 'object' || value === null).slice(0, 20)
  const words = short.map((value) => JSON.stringify(value).slice(0, 100))
  return [...words, ...(words.length < values.length ? ['…'] : [])].join(', ')
}

function checkText({ minLength, maxLength, pattern }: Keywords, value: string, path: string, checking: Checking): void {
  if (typeof minLength === 'number' || typeof maxLength === 'number') {
    const length = lengthOf(value)
    if (typeof minLength === 'number' && length < minLength)
      add(checking, path, `must have at least ${minLength} characters`)
    if (typeof maxLength === 'number' && length > maxLength)
      add(checking, path, `must have at most ${maxLength} characters`)
  }
  if (typeof pattern === 'string' && !matches(pattern, value, checking))
    add(checking, path, 'does not match its pattern')
}

/** In code points. */
function lengthOf(text: string): number {
  let length = 0
  for (const _ of text) length += 1
  return length
}

/** An unsupported pattern counts as matched. */
function matches(pattern: string, text: string, { work }: Checking): boolean {
  try {
    work.spend(1)
    return compilePattern(pattern, { isLenient: true, budget: work.patterns }).test(text, work.patterns)
  } catch (error) {
    if (error instanceof PatternError) return true
    throw error
  }
}

function checkNumber(keywords: Keywords, value: number, path: string, checking: Checking): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = keywords
  const isAbove = (least: number, isStrict: boolean) => (isStrict ? value > least : value >= least)
  const isBelow = (most: number, isStrict: boolean) => (isStrict ? value < most : value <= most)
  // In draft 4, `exclusiveMinimum` and `exclusiveMaximum` are booleans.
  if (typeof minimum === 'number' && !isAbove(minimum, exclusiveMinimum === true))
    add(checking, path, `must be at least ${minimum}`)
  if (typeof maximum === 'number' && !isBelow(maximum, exclusiveMaximum === true))
    add(checking, path, `must be at most ${maximum}`)
  if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum)
    add(checking, path, `must be more than ${exclusiveMinimum}`)
  if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum)
    add(checking, path, `must be less than ${exclusiveMaximum}`)
  if (typeof multipleOf === 'number' && multipleOf > 0) {
    const times = value / multipleOf
    // Tolerates floating-point error: 0.3 is a multiple of 0.1.
    if (Math.abs(times - Math.round(times)) > 1e-9 * Math.max(1, Math.abs(times))) {
      add(checking, path, `must be a multiple of ${multipleOf}`)
    }
  }
}

function checkList(keywords: Keywords, value: readonly unknown[], path: string, checking: Checking): void {
  const { minItems, maxItems, uniqueItems, prefixItems, items, additionalItems, contains, minContains, maxContains } =
    keywords
  if (typeof minItems === 'number' && value.length < minItems)
    add(checking, path, `must have at least ${minItems} items`)
  if (typeof maxItems === 'number' && value.length > maxItems)
    add(checking, path, `must have at most ${maxItems} items`)
  if (uniqueItems === true && !areUnique(value, checking)) add(checking, path, 'must not have the same item twice')
  const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : []
  const rest = Array.isArray(items) ? additionalItems : items
  value.forEach((item, i) => check(i < first.length ? first[i] : rest, item, join(path, i), checking))
  if (contains !== undefined) {
    const count = value.filter((item) => fits(contains, item, checking)).length
    const least = typeof minContains === 'number' ? minContains : 1
    if (count < least) add(checking, path, `must contain at least ${least} matching items`)
    if (typeof maxContains === 'number' && count > maxContains)
      add(checking, path, `must contain at most ${maxContains} matching items`)
  }
}

function areUnique(list: readonly unknown[], { work }: Checking): boolean {
  const simple = new Set<unknown>()
  const others: unknown[] = []
  for (const item of list) {
    work.spend(1 + (typeof item === 'object' ? others.length : 0))
    if (typeof item !== 'object' || item === null) {
      if (simple.has(item)) return false
      simple.add(item)
    } else {
      if (others.some((other) => equal(other, item))) return false
      others.push(item)
    }
  }
  return true
}

function checkMap(keywords: Keywords, value: Record<string, unknown>, path: string, checking: Checking): void {
  const { required, minProperties, maxProperties, propertyNames, additionalProperties } = keywords
  const keys = Object.keys(value)
  checking.work.spend(keys.length + asNames(required).length)
  for (const key of asNames(required)) if (!Object.hasOwn(value, key)) add(checking, join(path, key), 'is missing')
  if (typeof minProperties === 'number' && keys.length < minProperties)
    add(checking, path, `must have at least ${minProperties} keys`)
  if (typeof maxProperties === 'number' && keys.length > maxProperties)
    add(checking, path, `must have at most ${maxProperties} keys`)
  const properties = isObject(keywords.properties) ? keywords.properties : {}
  const patterns = Object.entries(isObject(keywords.patternProperties) ? keywords.patternProperties : {})
  for (const key of keys) {
    const at = join(path, key)
    let isKnown = Object.hasOwn(properties, key)
    if (isKnown) check(properties[key], value[key], at, checking)
    for (const [pattern, schema] of patterns) {
      if (!matches(pattern, key, checking)) continue
      isKnown = true
      check(schema, value[key], at, checking)
    }
    if (!isKnown) check(additionalProperties, value[key], at, checking)
    if (propertyNames !== undefined) check(propertyNames, key, at, checking)
  }
  checkDependent(keywords, value, path, checking)
}

function checkDependent(keywords: Keywords, value: Record<string, unknown>, path: string, checking: Checking): void {
  for (const dependents of [keywords.dependentRequired, keywords.dependentSchemas, keywords.dependencies]) {
    for (const [key, wanted] of Object.entries(isObject(dependents) ? dependents : {})) {
      if (!Object.hasOwn(value, key)) continue
      checking.work.spend(asNames(wanted).length)
      if (!Array.isArray(wanted)) check(wanted, value, path, checking)
      else
        for (const name of asNames(wanted))
          if (!Object.hasOwn(value, name)) add(checking, join(path, name), 'is missing')
    }
  }
}

function checkCombined(keywords: Keywords, value: unknown, path: string, checking: Checking): void {
  const { allOf, anyOf, oneOf, not } = keywords
  if (Array.isArray(allOf)) for (const each of allOf) check(each, value, path, checking)
  if (Array.isArray(anyOf) && !anyOf.some((each) => fits(each, value, checking)))
    add(checking, path, 'matches none of the alternatives')
  if (Array.isArray(oneOf)) {
    const count = oneOf.filter((each) => fits(each, value, checking)).length
    if (count !== 1)
      add(checking, path, count === 0 ? 'matches none of the alternatives' : 'matches more than one alternative')
  }
  if (not !== undefined && fits(not, value, checking)) add(checking, path, 'matches a schema that is not allowed')
  if (keywords.if !== undefined)
    check(fits(keywords.if, value, checking) ? keywords.then : keywords.else, value, path, checking)
}

function asNames(list: unknown): string[] {
  return Array.isArray(list) ? list.filter((name) => typeof name === 'string') : []
}

function join(path: string, key: string | number): string {
  return path === '' ? String(key) : `${path}.${key}`
}

/** Resolves a `$ref` within a document. Returns `true`, which accepts any value, if the target is not in the document. */
function resolveReference(root: unknown, reference: string, work: WorkBudget): unknown {
  const hash = reference.indexOf('#')
  const address = hash < 0 ? reference : reference.slice(0, hash)
  if (!isObject(root) || (address !== '' && address !== root['$id'] && address !== root['id'])) return true
  const fragment = decode(hash < 0 ? '' : reference.slice(hash + 1))
  if (fragment === '') return root
  return fragment.startsWith('/') ? follow(root, fragment) : findAnchor(root, fragment, work)
}

function decode(fragment: string): string {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return fragment
  }
}

function follow(root: unknown, pointer: string): unknown {
  let at = root
  for (const part of pointer.slice(1).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return true
    at = (at as Record<string, unknown>)[key]
  }
  return at
}

function findAnchor(root: unknown, name: string, work: WorkBudget): unknown {
  const open = [root]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    work.spend(1)
    if (typeof at !== 'object' || at === null) continue
    const { $anchor, $id } = at as Record<string, unknown>
    if ($anchor === name || $id === `#${name}`) return at
    open.push(...Object.values(at))
  }
  return true
}

/** Limits the work of validating a value. */
class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork'
}

interface WorkBudget {
  /** Call around the check of each schema. Throws {@link TooMuchWork}. */
  enter(): void
  leave(): void
  spend(amount: number): void
  readonly patterns: PatternBudget
}

const mostSteps = 500_000
/** A value may be 256 levels deep, and each level may need a reference, an alternative and an object schema. */
const deepest = 1000

function createWork(): WorkBudget {
  let left = mostSteps
  let depth = 0
  const spend = (amount: number) => {
    left -= amount
    if (left < 0) throw new TooMuchWork('The comparison takes too many steps.')
  }
  return {
    enter() {
      spend(1)
      depth += 1
      if (depth > deepest) throw new TooMuchWork('The schema or the value is nested too deeply.')
    },
    leave() {
      depth -= 1
    },
    spend,
    patterns: { left: fullBudget },
  }
}

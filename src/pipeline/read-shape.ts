/**
 * Converts the short notation of a value's shape to JSON Schema: for `input`, `output.schema` and a client tool's
 * `parameters`.
 *
 *     topic: string                                            a type alone
 *     tone?: { type: string, enum: [dry, warm] }               `?` after a name: optional
 *     count: { type: integer, default: 3, minimum: 1 }         a default makes it optional as well
 *     tags: { type: array, items: string }
 *     author: { type: object, properties: { name: string } }
 *
 * JSON Schema itself, `{type: object, properties: {…}, required: […]}`, also works; a list `required` is then complete.
 */
import { z } from 'zod'
import { check, child } from './check.ts'
import { messageOf } from '../part/error.ts'
import { checkValue } from './check-input.ts'
import { compilePattern } from './pattern/pattern.ts'
import type { FaultCollector } from './fault.ts'
import { integer, later, list, map, name, number, oneOf, text, toNumber, flag } from './scalars.ts'
import { toTemplate, toText } from './template.ts'
import type { Node } from './tree.ts'
import { valueTypes, type ValueSchema, type ValueType } from './value-schema.ts'
import { ownValue } from '../part/own-value.ts'

const anyType = [...valueTypes, 'any'] as const

/** The full form of one value's shape. */
export const shape = map({
  type: oneOf(anyType).optional().describe('Type of the value. "any" accepts every value.'),
  title: text.optional().describe('Display name.'),
  description: text.optional().describe('What the value means, for people and models.'),
  default: z.unknown().optional().describe('Used when the value is missing.'),
  enum: list(z.unknown()).min(1, 'is empty; list the allowed values').optional().describe('The only values allowed.'),
  minimum: number(-Infinity).optional().describe('Smallest allowed number.'),
  maximum: number(-Infinity).optional().describe('Largest allowed number.'),
  minLength: integer(0).optional().describe('Minimum number of characters.'),
  maxLength: integer(0).optional().describe('Maximum number of characters.'),
  pattern: text
    .optional()
    .describe(
      'A regular expression that must match somewhere in the string. Lookarounds and back-references are not supported.',
    ),
  format: text.optional().describe('A format such as date-time: a hint for models and clients, not enforced.'),
  items: later('shape').optional().describe('Shape of the items of an array.'),
  minItems: integer(0).optional().describe('Minimum number of items.'),
  maxItems: integer(0).optional().describe('Maximum number of items.'),
  properties: z
    .record(z.string(), later('shape'), 'must be a map: name → shape')
    .optional()
    .describe('Shapes of the properties of an object, by name.'),
  required: list(name).optional().describe('Required properties. Default: all except those with "?" or a default.'),
  additionalProperties: z
    .union([flag, later('shape')])
    .optional()
    .describe('Whether other properties are allowed, or the shape they must have.'),
  anyOf: list(later('shape'))
    .min(1, 'is empty; list at least one shape')
    .optional()
    .describe('The value must match at least one of these shapes.'),
})

/** Keys that apply to one type only; the others apply to all types. */
const keysOf: Readonly<Record<string, readonly string[]>> = {
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum'],
  array: ['items', 'minItems', 'maxItems'],
  object: ['properties', 'required', 'additionalProperties'],
}

/** Reads a map of names → shapes, or a JSON Schema of an object or array. */
export function readShapes(node: Node, faults: FaultCollector): ValueSchema {
  const type = child(node, 'type')
  const own =
    type?.kind === 'scalar' &&
    ((type.text === 'object' && child(node, 'properties')?.kind === 'map') ||
      (type.text === 'array' && child(node, 'items') !== undefined))
  if (own) return readShape(node, faults)
  if (node.kind !== 'map') {
    faults.add(
      node.at,
      'a schema must be a map: name → string, number, integer, boolean, array, object or a map with "type"',
    )
    return {}
  }
  return { type: 'object', ...readProperties(node, undefined, faults) }
}

function readShape(node: Node, faults: FaultCollector): ValueSchema {
  if (node.kind === 'scalar') {
    const type = check(oneOf(anyType), node, faults, 'the type')
    return type === undefined || type === 'any' ? {} : { type }
  }
  const parsed = check(shape, node, faults, 'a shape')
  const type = parsed?.type ?? impliedType(node)
  if (parsed && type === undefined && !parsed.enum && !parsed.anyOf) {
    faults.add(node.at, `missing key "type"; add one of ${anyType.join(', ')}`)
  }
  if (parsed) checkFit(node, type, faults)
  const schema: ValueSchema = {}
  if (type !== undefined && type !== 'any') schema.type = type
  const { items, properties, additionalProperties, anyOf, enum: values, default: fallback } = nodesOf(node)
  if (parsed) {
    const { title, description, minimum, maximum, minLength, maxLength, pattern, format, minItems, maxItems } = parsed
    const plain = { title, description, minimum, maximum, minLength, maxLength, pattern, format, minItems, maxItems }
    Object.assign(schema, Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined)))
    // Without the invalid pattern, the default is still checked against the rest.
    if (pattern !== undefined && !checkPattern(pattern, child(node, 'pattern')!, faults)) delete schema.pattern
  }
  if (items) schema.items = readShape(items, faults)
  if (properties?.kind === 'map') Object.assign(schema, readProperties(properties, parsed?.required, faults))
  if (additionalProperties) {
    const allowed = parsed?.additionalProperties
    schema.additionalProperties = typeof allowed === 'boolean' ? allowed : readShape(additionalProperties, faults)
  }
  if (anyOf?.kind === 'list') schema.anyOf = anyOf.items.map((form) => readShape(form, faults))
  if (values?.kind === 'list') schema.enum = values.items.map((value) => toValue(value, schema))
  if (fallback) {
    schema.default = toValue(fallback, schema)
    for (const fault of checkValue(schema, schema.default, 'the default').faults) faults.add(fallback.at, fault)
  }
  return schema
}

function readProperties(
  node: Extract<Node, { kind: 'map' }>,
  listed: readonly string[] | undefined,
  faults: FaultCollector,
): Pick<ValueSchema, 'properties' | 'required'> {
  const properties = new Map<string, ValueSchema>()
  const required: string[] = []
  for (const [written, { at, value }] of node.entries) {
    const optional = written.endsWith('?')
    const key = optional ? written.slice(0, -1) : written
    if (properties.has(key)) faults.add(at, `duplicate key "${key}"; remove one of the two`)
    const schema = readShape(value, faults)
    properties.set(key, schema)
    if (listed === undefined ? !optional && schema.default === undefined : listed.includes(key)) required.push(key)
  }
  for (const key of listed ?? []) {
    if (!properties.has(key))
      faults.add(node.at, `"required" names "${key}", which is not in "properties"; add it there`)
  }
  return { properties: Object.fromEntries(properties), ...(required.length > 0 ? { required } : undefined) }
}

function nodesOf(node: Node): Record<string, Node | undefined> {
  return node.kind === 'map' ? Object.fromEntries([...node.entries].map(([key, { value }]) => [key, value])) : {}
}

function impliedType(node: Node): ValueType | undefined {
  if (child(node, 'properties')) return 'object'
  return child(node, 'items') ? 'array' : undefined
}

function checkFit(node: Node, type: string | undefined, faults: FaultCollector): void {
  if (type === undefined || type === 'any' || node.kind !== 'map') return
  const fitting = ownValue(keysOf, type === 'integer' ? 'number' : type) ?? []
  for (const [key, { at }] of node.entries) {
    const owner = Object.entries(keysOf).find(([, keys]) => keys.includes(key))?.[0]
    if (owner !== undefined && !fitting.includes(key)) {
      faults.add(at, `"${key}" applies to type ${owner}, not to type ${type}; remove it`)
    }
  }
}

function checkPattern(pattern: string, node: Node, faults: FaultCollector): boolean {
  try {
    compilePattern(pattern)
    return true
  } catch (error) {
    faults.add(node.at, `"pattern" ${messageOf(error)}: ${JSON.stringify(pattern)}`)
    return false
  }
}

/** A value in the file, converted to the type of its shape: `default: 3` of a string is "3". */
function toValue(node: Node, { type, items, properties }: ValueSchema): unknown {
  if (node.kind === 'list') return node.items.map((item) => toValue(item, items ?? {}))
  if (node.kind === 'map') {
    const typed = ([key, { value }]: [string, { value: Node }]) => [
      key,
      toValue(value, ownValue(properties, key) ?? {}),
    ]
    return Object.fromEntries([...node.entries].map(typed))
  }
  if (type === 'string') return toText(node)
  if (type === 'number' || type === 'integer') return toNumber(node.text)
  if (type === 'boolean' && node.text === 'true') return true
  if (type === 'boolean' && node.text === 'false') return false
  return toTemplate(node)
}

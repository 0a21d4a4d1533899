/** What the schema of agents allows at a place of a YAML text: keys of a mapping, words of a value. */
import { ownValue } from '../../../src/part/own-value.ts'
import type { PathPart, YamlPlace } from './yaml-place.ts'

export type Schema = Record<string, unknown>

export interface Option {
  label: string
  /** What it is, in a sentence. */
  info?: string
  kind: 'key' | 'value'
}

export function optionsAt(schema: Schema, { path, beside, key }: YamlPlace): Option[] {
  const here = path.reduce<Schema[]>((schemas, part) => schemas.flatMap((each) => below(schema, each, part)), [schema])
  const schemas = here.flatMap((each) => spread(schema, each, beside))
  // What begins an item of a list may be its whole value.
  const isItem = path.at(-1)?.kind === 'item' && beside.size === 0
  const options =
    key === undefined
      ? [...(isItem ? schemas.flatMap(toValues) : []), ...keysOf(schemas, beside)]
      : valuesOf(schema, schemas, key)
  return [...new Map(options.map((option) => [option.label, option])).values()]
}

function below(root: Schema, schema: Schema, part: PathPart): Schema[] {
  if (part.kind === 'item') return spread(root, schema, new Map()).flatMap(({ items }) => asSchemas(items))
  return spread(root, schema, part.beside).flatMap((each) => {
    const own = ownValue(asRecord(each['properties']), part.name)
    return own === undefined ? asSchemas(each['additionalProperties']) : asSchemas(own)
  })
}

/** A schema and all those that apply with it: references, alternatives, and conditions on the keys beside. */
function spread(root: Schema, schema: Schema, beside: ReadonlyMap<string, string>, depth = 0): Schema[] {
  if (depth > 8) return []
  const { $ref, allOf, anyOf, oneOf, if: condition, then } = schema
  const more = [
    ...(typeof $ref === 'string'
      ? asSchemas(ownValue(asRecord(root['definitions']), $ref.replace('#/definitions/', '')))
      : []),
    ...[allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list.flatMap(asSchemas) : [])),
    ...(condition !== undefined && holds(asRecord(condition), beside) ? asSchemas(then) : []),
  ]
  return [schema, ...more.flatMap((each) => spread(root, each, beside, depth + 1))]
}

/** `if: { properties: { type: { const: "llm" } } }` */
function holds(condition: Schema, beside: ReadonlyMap<string, string>): boolean {
  return Object.entries(asRecord(condition['properties'])).every(
    ([key, value]) => asRecord(value)['const'] === beside.get(key),
  )
}

function keysOf(schemas: readonly Schema[], beside: ReadonlyMap<string, string>): Option[] {
  return schemas
    .flatMap(({ properties }) => Object.entries(asRecord(properties)))
    .filter(([label]) => !beside.has(label))
    .map(([label, value]) => ({ label, kind: 'key', ...infoOf(asRecord(value)) }))
}

function valuesOf(root: Schema, schemas: readonly Schema[], key: string): Option[] {
  const of = schemas.flatMap(({ properties }) => asSchemas(ownValue(asRecord(properties), key)))
  return of.flatMap((each) => spread(root, each, new Map())).flatMap(toValues)
}

function toValues(schema: Schema): Option[] {
  return wordsOf(schema).map((label) => ({ label, kind: 'value', ...infoOf(schema) }))
}

function wordsOf({ enum: words, const: word, examples, type }: Schema): string[] {
  if (Array.isArray(words)) return words.map(String)
  if (Array.isArray(examples)) return examples.map(String)
  if (typeof word === 'string') return [word]
  return type === 'boolean' || (Array.isArray(type) && type[0] === 'boolean') ? ['true', 'false'] : []
}

function infoOf({ description }: Schema): { info?: string } {
  return typeof description === 'string' ? { info: description } : {}
}

function asRecord(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {}
}

function asSchemas(value: unknown): Schema[] {
  return typeof value === 'object' && value !== null ? [asRecord(value)] : []
}

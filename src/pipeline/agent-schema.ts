/**
 * JSON Schema of an agent file for editors, generated from the schemas of the parser. Draft 7, which
 * yaml-language-server supports best. Editors read typed YAML, the parser reads strings: so both accept an unquoted `5`
 * for a string and a quoted one for a number.
 */
import { z } from 'zod'
import { builtinSteps } from './names.ts'
import type { Known } from './pipeline.ts'
import { shape } from './read-shape.ts'
import type { NameKind } from './scalars.ts'
import { file, step } from './schema.ts'
import { stepTypes } from './step-types.ts'
import { omitUndefined } from '../part/omit-undefined.ts'

export type JsonSchema = { [key: string]: unknown }

/** With `known`, only the known names of tools, callbacks, agents and the like are valid, and editors suggest them. */
export function agentJsonSchema(known?: Known): JsonSchema {
  const definitions: JsonSchema = { shape: shapeSchema(), shapes: shapesSchema(), step: stepSchema(known) }
  for (const [type, { about, config }] of stepTypes) {
    definitions[type] = { description: about, ...toDraft7(config(), known) }
  }
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Millrace agent',
    description: 'An agent: a pipeline of steps that answers a request.',
    ...toDraft7(file),
    definitions,
  }
}

function shapeSchema(): JsonSchema {
  const types = z.toJSONSchema(shape.shape.type, { target: 'draft-7', io: 'input' })['enum']
  return { anyOf: [{ description: 'Type of the value.', enum: types }, toDraft7(shape)] }
}

/** Names and their shapes, or one shape in the form of JSON Schema. */
function shapesSchema(): JsonSchema {
  const oneShape = { required: ['type'], anyOf: [{ required: ['properties'] }, { required: ['items'] }] }
  return {
    type: 'object',
    anyOf: [
      { additionalProperties: { $ref: '#/definitions/shape' } },
      { allOf: [{ $ref: '#/definitions/shape' }, oneShape] },
    ],
  }
}

function stepSchema(known: Known | undefined): JsonSchema {
  const types = [...new Set([...builtinSteps, ...(known?.stepTypes ?? [])])]
  const schema = toDraft7(step)
  const properties = schema['properties'] as Record<string, JsonSchema>
  const description = properties['type']?.['description']
  // Without the config, custom types are unknown: any name is valid, the built-in ones are suggested.
  const type = known ? { description, enum: types } : { description, anyOf: [{ enum: types }, { type: 'string' }] }
  const kinds = [...stepTypes].map(([name, { config }]) => ({
    if: { properties: { type: { const: name } }, required: ['type'] },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: {
      properties: { config: { $ref: `#/definitions/${name}` } },
      ...(config().safeParse({}).success ? undefined : { required: ['config'] }),
    },
  }))
  return { ...schema, properties: { ...properties, type }, allOf: kinds }
}

export function toDraft7(schema: z.ZodType, known?: Known): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { target: 'draft-7', io: 'input', unrepresentable: 'any' })
  return loosen(rest, known) as JsonSchema
}

const quotedNumber = String.raw`^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$`

/** Accepts every scalar form that the parser accepts: to the parser all scalars are strings, and the schema decides the type. */
function loosen(value: unknown, known: Known | undefined): unknown {
  if (Array.isArray(value)) return value.map((item) => loosen(item, known))
  if (typeof value !== 'object' || value === null) return value
  const { ref, yaml, preset, names, ...node } = value as JsonSchema
  if (preset !== undefined) node['default'] = preset
  const { description } = node
  const about = description === undefined ? undefined : { description }
  // A model that nobody has named may be used, too: the names are suggested.
  if (names === 'models' && known?.models?.length) node['examples'] = [...known.models]
  const choice = names !== undefined && names !== 'models' && known && oneKnown(names as NameKind, known)
  if (choice) return { ...about, ...choice }
  if (typeof ref === 'string') {
    const target = { $ref: `#/definitions/${ref}` }
    // Draft 7 ignores all keywords beside $ref.
    return about === undefined ? target : { ...about, allOf: [target] }
  }
  if (yaml === 'duration') {
    return {
      ...about,
      type: ['integer', 'string'],
      minimum: node['minimum'],
      pattern: String.raw`^\d+(\.\d+)?\s*(ms|s|m|h|d)?$`,
    }
  }
  if (yaml === 'size') {
    const pattern = String.raw`^\d+(\.\d+)?\s*([bB]|[kKmMgG][bB])?$`
    return { ...about, type: ['integer', 'string'], minimum: node['minimum'], pattern }
  }
  if (yaml === 'tokens' || yaml === 'characters') {
    const pattern = yaml === 'tokens' ? String.raw`^\d+(\.\d+)?\s*[kKmM]?$` : String.raw`^\d+(\.\d+)?\s*[kK]?$`
    return { ...about, type: ['integer', 'string'], minimum: node['minimum'], pattern }
  }
  if (yaml === 'percent') return { ...about, type: 'string', pattern: String.raw`^\d+(\.\d+)?\s*%$` }
  const schema: JsonSchema = {}
  for (const [key, item] of Object.entries(node)) {
    if (key === 'properties' || key === 'definitions') {
      schema[key] = Object.fromEntries(
        Object.entries(item as object).map(([name, each]) => [name, loosen(each, known)]),
      )
    } else if (key === 'oneOf') {
      // Editors explain a failed anyOf better than a failed oneOf.
      schema['anyOf'] = loosen(item, known)
    } else if (key !== 'propertyNames')
      schema[key] = key === 'default' || key === 'enum' || key === 'const' ? item : loosen(item, known)
  }
  if (yaml === 'prompt') {
    const path = { type: 'string', description: 'Path of a text file, relative to the folder of this file.' }
    const file = { type: 'object', properties: { file: path }, required: ['file'], additionalProperties: false }
    return { ...about, anyOf: [{ type: ['string', 'number', 'boolean'] }, file] }
  }
  if (yaml === 'toolUse' && known) {
    // Client tools may have any name.
    const client = { required: ['client'], properties: { client: { enum: [true, 'true'] } } }
    return { ...schema, anyOf: [client, { properties: { name: oneKnown('tools', known) } }] }
  }
  if ('enum' in schema) return schema
  if (schema['const'] === true) return { ...about, enum: [true, 'true'] }
  if ('const' in schema) return schema
  if (schema['type'] === 'string') schema['type'] = ['string', 'number', 'boolean']
  if (schema['type'] === 'boolean') return { ...schema, type: ['boolean', 'string'], pattern: '^(true|false)$' }
  if (schema['type'] === 'number' || schema['type'] === 'integer') {
    for (const key of ['minimum', 'maximum']) {
      const bound = schema[key]
      // zod writes Infinity as null; the largest safe integer tells the reader nothing.
      if (typeof bound !== 'number' || Math.abs(bound) >= Number.MAX_SAFE_INTEGER) delete schema[key]
    }
    return { ...schema, type: [schema['type'], 'string'], pattern: quotedNumber }
  }
  return schema
}

/** One of the names of a kind in the config; the pattern allows names that are known only during a run. */
function oneKnown(kind: NameKind, known: Known): JsonSchema | undefined {
  const names = known[kind]
  if (names === undefined) return undefined
  const others: Partial<Record<NameKind, string | undefined>> = { agents: String.raw`^\$`, tools: toolPattern(known) }
  const pattern = others[kind]
  // An empty enum is not a valid schema; if no names are known, no name is valid.
  const one = names.length > 0 ? { enum: [...names] } : { not: {} }
  return pattern === undefined ? one : { anyOf: [one, { type: 'string', pattern }] }
}

function toolPattern({ mcpServers = [] }: Known): string | undefined {
  const servers = mcpServers.map((server) => server.replaceAll(/[^\w-]/g, String.raw`\$&`))
  return servers.length > 0 ? `^(${servers.join('|')})_.` : undefined
}

/** Every key of an agent file as rows of a table, generated from the parser's schemas, so that the docs are always right. */
interface KeyRow {
  /** Where the key belongs: `file`, `step`, `shape`, or the step type whose `config` has it. */
  place: string
  /** The key with its parents: `budget.tokens`, `tools[].timeout`. */
  key: string
  /** For readers: `integer`, `duration`, `one of a, b`. */
  type: string
  required: boolean
  /** As written in the file; undefined if there is none. */
  default?: string
  description: string
}

/** In the order of the schemas. A key that several forms of a value share appears once. */
export function describeKeys(): KeyRow[] {
  const schema = agentJsonSchema()
  const definitions = schema['definitions'] as Record<string, JsonSchema>
  const places: [string, JsonSchema][] = [
    ['file', schema],
    ['step', definitions['step']!],
    ...[...stepTypes.keys()].map((type): [string, JsonSchema] => [type, definitions[type]!]),
    ['shape', definitions['shape']!],
  ]
  const rows = new Map<string, KeyRow>()
  for (const [place, node] of places) {
    for (const row of rowsOf(place, '', node)) {
      const id = `${row.place} ${row.key}`
      const first = rows.get(id)
      if (first === undefined) rows.set(id, row)
      else first.type = [...new Set([...first.type.split(' or '), ...row.type.split(' or ')])].join(' or ')
    }
  }
  return [...rows.values()]
}

function* rowsOf(place: string, parents: string, node: JsonSchema): Generator<KeyRow> {
  for (const form of (node['anyOf'] ?? []) as JsonSchema[]) yield* rowsOf(place, parents, form)
  if (node['type'] === 'array') yield* rowsOf(place, `${parents}[]`, node['items'] as JsonSchema)
  const required = (node['required'] ?? []) as string[]
  for (const [name, property] of Object.entries((node['properties'] ?? {}) as Record<string, JsonSchema>)) {
    const key = parents === '' ? name : `${parents}.${name}`
    const { default: fallback, description = '' } = property
    yield omitUndefined({
      place,
      key,
      type: typeOf(property),
      required: required.includes(name),
      default: fallback === undefined ? undefined : written(fallback),
      description: description as string,
    })
    yield* rowsOf(place, key, property)
  }
}

function typeOf(node: JsonSchema): string {
  const { enum: values, const: only, anyOf, allOf, type, items, $ref } = node
  if ($ref === '#/definitions/shapes') return 'map of shapes'
  if (typeof $ref === 'string') return $ref.replace('#/definitions/', '')
  if (Array.isArray(values)) return values.includes(true) ? 'true' : `one of ${values.join(', ')}`
  if (only !== undefined) return written(only)
  const forms = (anyOf ?? allOf) as JsonSchema[] | undefined
  if (forms) return [...new Set(forms.map(typeOf))].join(' or ')
  if (type === 'array') return `list of ${typeOf(items as JsonSchema)}`
  if (type === 'object') return 'map'
  if (type === 'string') return 'string'
  if (!Array.isArray(type)) return 'any'
  if (type.includes('boolean') && !type.includes('number')) return 'boolean'
  if (type.length === 3) return 'string'
  if (String(node['pattern']).includes('ms|s|m')) return 'duration'
  return type[0] === 'integer' ? 'integer' : 'number'
}

function written(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Every key of an agent file as rows of a table, generated from the parser's schemas, so that the docs are always right. */
import { compact } from '../part/compact.ts'
import { agentJsonSchema, type JsonSchema } from './agent-schema.ts'
import { stepTypes } from './step-types.ts'

export interface KeyRow {
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
    yield compact({
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

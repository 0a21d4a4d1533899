/**
 * The known shape of a value before a run: enough to detect references that can have no value. An unknown shape is
 * `undefined`, and references into it are never faults.
 */
import type { ValueSchema } from './value-schema.ts'

export type ValueShape =
  | { kind: 'text' | 'number' | 'flag' | 'null' }
  | { kind: 'list'; items: ValueShape | undefined }
  | { kind: 'map'; fields: ReadonlyMap<string, ValueShape | undefined> }
  /** One of these; which one is known only at run time. */
  | { kind: 'either'; shapes: readonly (ValueShape | undefined)[] }

type Plain = Exclude<ValueShape, { kind: 'either' }>

export const scalar = {
  text: { kind: 'text' },
  number: { kind: 'number' },
  flag: { kind: 'flag' },
  null: { kind: 'null' },
} as const satisfies Record<string, ValueShape>

export function mapOf(fields: Readonly<Record<string, ValueShape | undefined>>): ValueShape {
  return { kind: 'map', fields: new Map(Object.entries(fields)) }
}

export function listOf(items?: ValueShape): ValueShape {
  return { kind: 'list', items }
}

/** Where a path ends without a value: none of the shapes in `at` has `key`. */
export interface DeadEnd {
  /** The keys before `key`. */
  seen: string[]
  key: string
  at: Plain[]
}

export function deadEnd(shape: ValueShape | undefined, path: readonly string[]): DeadEnd | undefined {
  const found = follow(shape, path)
  return Array.isArray(found) ? undefined : found
}

/** The shape at a path; undefined if unknown. */
export function shapeAt(shape: ValueShape | undefined, path: readonly string[]): ValueShape | undefined {
  const found = follow(shape, path)
  if (!Array.isArray(found)) return undefined
  return found.length === 1 ? found[0] : { kind: 'either', shapes: found }
}

/** Visits each shape once per key: the number of paths through alternatives may be very large. */
function follow(shape: ValueShape | undefined, path: readonly string[]): Plain[] | DeadEnd | undefined {
  let at = plain([shape])
  for (const [i, key] of path.entries()) {
    if (at === undefined) return undefined
    const next = at.flatMap((each) => (has(each, key) ? [inside(each, key)] : []))
    if (next.length === 0) return { seen: path.slice(0, i), key, at }
    at = plain(next)
  }
  return at
}

/** The alternatives without duplicates; undefined if one is unknown. */
function plain(shapes: readonly (ValueShape | undefined)[]): Plain[] | undefined {
  const found = new Set<ValueShape>()
  for (const shape of shapes) if (shape === undefined) return undefined
  for (const shape of shapes) found.add(shape!)
  for (const shape of found) {
    if (shape.kind !== 'either') continue
    for (const each of shape.shapes) {
      if (each === undefined) return undefined
      found.add(each)
    }
  }
  return [...found].filter((each) => each.kind !== 'either')
}

function has(shape: Plain, key: string): boolean {
  if (shape.kind === 'list') return /^(?:\d+|length)$/.test(key)
  return shape.kind === 'map' && shape.fields.has(key)
}

function inside(shape: Plain, key: string): ValueShape | undefined {
  if (shape.kind === 'list') return key === 'length' ? scalar.number : shape.items
  return shape.kind === 'map' ? shape.fields.get(key) : undefined
}

/** A map has only the keys that its schema declares; its shape is unknown if other keys are explicitly allowed. */
export function shapeOfSchema(schema: ValueSchema | undefined): ValueShape | undefined {
  if (schema === undefined || schema.anyOf !== undefined) return undefined
  switch (schema.type) {
    case 'string':
      return scalar.text
    case 'number':
    case 'integer':
      return scalar.number
    case 'boolean':
      return scalar.flag
    case 'null':
      return scalar.null
    case 'array':
      return listOf(shapeOfSchema(schema.items))
    case 'object': {
      const { properties, additionalProperties = false } = schema
      if (properties === undefined || additionalProperties !== false) return undefined
      const fields = Object.entries(properties).map(([key, each]) => [key, shapeOfSchema(each)] as const)
      return { kind: 'map', fields: new Map(fields) }
    }
    default:
      return undefined
  }
}

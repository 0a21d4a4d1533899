/**
 * Values without a schema: templates, the config of custom steps, `return`, `providerOptions`.
 * There, unquoted `true`, `false`, `null`, `4` and `1.5` keep their type, and quoted ones are strings.
 */
import { wholeReference } from './reference.ts'
import { isMap } from './scalars.ts'
import type { Node } from './tree.ts'

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

export function toTemplate(node: Node): unknown {
  return convert(node, (text, plain) => (plain ? toTyped(text) : text))
}

/** The tree as plain data with all scalars as strings: the input of the schemas, which know the types. */
export function toText(node: Node): unknown {
  return convert(node, (text) => text)
}

function convert(node: Node, scalar: (text: string, plain: boolean) => unknown): unknown {
  switch (node.kind) {
    case 'scalar':
      return scalar(node.text, node.plain)
    case 'list':
      return node.items.map((item) => convert(item, scalar))
    case 'map':
      return Object.fromEntries([...node.entries].map(([key, { value }]) => [key, convert(value, scalar)]))
  }
}

function toTyped(text: string): unknown {
  if (text === 'true') return true
  if (text === 'false') return false
  if (text === 'null' || text === '') return null
  if (!number.test(text)) return text
  const value = Number(text)
  // An id of 20 digits or 1e999 would become another number, so it stays a string.
  return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value)) ? value : text
}

/** For schemas: whether a value is written as a map, or as a reference to one. */
export function isMapOrReference(value: unknown): boolean {
  return typeof value === 'string' ? wholeReference(value) !== undefined : isMap(value)
}

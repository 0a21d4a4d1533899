/**
 * Values where no schema says the type: templates, the config of custom steps, `return`, `providerOptions`.
 * There plain `true`, `false`, `null`, `4` and `1.5` are what they look like, and quoted ones stay text.
 */
import type { Node } from './tree.ts'

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

export function toTemplate(node: Node): unknown {
  return convert(node, (text, plain) => (plain ? toTyped(text) : text))
}

/** The tree as plain data with all scalars as text: what the schemas, which know the types, are given. */
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
  // An id of 20 digits or 1e999 would come out as another number: such things stay the text they are.
  return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value)) ? value : text
}

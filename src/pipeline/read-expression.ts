import { parseExpression, type Expression } from './expression.ts'
import { placeIn } from './place.ts'
import { checkReference, type Place, type Reader } from './reader.ts'
import type { Node } from './tree.ts'

/** Reads the expression of `if` or `while`; faults point at the words they are about. */
export function readExpression(node: Node | undefined, place: Place, reader: Reader): Expression | undefined {
  if (node?.kind !== 'scalar' || node.text.trim() === '') return undefined
  const at = (offset: number) => placeIn(reader.text, node, offset)
  const parsed = parseExpression(node.text, (offset, message) => reader.faults.add(at(offset), message))
  for (const { at: offset, reference } of parsed?.references ?? []) {
    checkReference(reference, at(offset), place, reader)
  }
  return parsed?.expression
}

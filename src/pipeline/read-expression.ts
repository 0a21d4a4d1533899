import { parseExpression, type Expression } from './expression.ts'
import { checkReference, type StepScope, type PipelineReader } from './reader.ts'
import type { Node } from './tree.ts'

/** Reads the expression of `if` or `while`; faults point at the words they are about. */
export function readExpression(
  node: Node | undefined,
  place: StepScope,
  reader: PipelineReader,
): Expression | undefined {
  if (node?.kind !== 'scalar' || node.text.trim() === '') return undefined
  const at = (offset: number) => placeIn(reader.text, node, offset)
  const parsed = parseExpression(node.text, (offset, message) => reader.faults.add(at(offset), message))
  for (const { at: offset, reference } of parsed?.references ?? []) {
    checkReference(reference, at(offset), place, reader)
  }
  return parsed?.expression
}

/* Maps an offset in a scalar's text to its offset in the file, so that a fault points at the right word. */

/**
 * The source of a scalar differs from its value by indentation, folded lines and escapes. Both are walked in parallel; if
 * they diverge (an escape), the result is the start of the scalar.
 */
function placeIn(source: string, node: Extract<Node, { kind: 'scalar' }>, offset: number): number {
  let at = node.at
  if (source[at] === '|' || source[at] === '>') at = source.indexOf('\n', at) + 1
  else if (!node.plain && (source[at] === '"' || source[at] === "'")) at++
  const blank = /\s/
  for (let i = 0; ; i++) {
    const wanted = node.text[i]
    if (wanted === undefined) return at
    while (source[at] !== wanted && at < source.length && blank.test(source[at]!)) at++
    if (i === offset) return at
    if (source[at] === wanted) at++
    // A folded line break became a space, which was already skipped.
    else if (!blank.test(wanted)) return node.at
    if (wanted === "'" && source[at] === "'" && source[node.at] === "'") at++
  }
}

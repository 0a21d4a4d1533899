/** Maps an offset in a scalar's text to its offset in the file, so that a fault points at the right word. */
import type { Node } from './tree.ts'

/**
 * The source of a scalar differs from its value by indentation, folded lines and escapes. Both are walked in parallel; if
 * they diverge (an escape), the result is the start of the scalar.
 */
export function placeIn(source: string, node: Extract<Node, { kind: 'scalar' }>, offset: number): number {
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

/** Where in a file an offset of a scalar's text stands, so that a fault inside a text points at its word. */
import type { Node } from './tree.ts'

/**
 * The text as it was written differs from its value by indentation, folded lines and escapes. Both are walked side by side;
 * where they part (an escape) the place is that of the scalar.
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
    // A folded line break has become a space: it is behind us already.
    else if (!blank.test(wanted)) return node.at
    if (wanted === "'" && source[at] === "'" && source[node.at] === "'") at++
  }
}

/** The known shape of the value of a reference, at its place in the file. */
import type { Place, Reader } from './reader.ts'
import { shapeAt, type Shape } from './shape.ts'

export function shapeOfPath(path: readonly string[], place: Place, reader: Reader): Shape | undefined {
  const { shape, rest } = rootOf(path, place, reader)
  return shapeAt(shape, rest)
}

/** The shape of the first variable of a reference, and the remaining path. */
export function rootOf(
  path: readonly string[],
  { results, loopNames }: Place,
  { input }: Reader,
): { shape: Shape | undefined; rest: readonly string[] } {
  const [root, second, ...more] = path as [string, ...string[]]
  const rest = path.slice(1)
  if (root === 'input') return { shape: input, rest }
  if (root === 'stepResult') return { shape: results.get(second ?? ''), rest: more }
  return { shape: results.get(root) ?? loopNames.get(root), rest }
}

/** How a new answer is told. */
import type { Said, TestChange } from '../../data/tests.ts'

/** Which part of the case it is of; nothing where there is only one. */
export function labelOf({ turn, judge }: Pick<TestChange['runs'][number], 'turn' | 'judge'>, turns: number): string {
  const where = turns > 1 ? `Turn ${turn + 1}` : ''
  if (judge !== true) return where
  return where === '' ? 'Judge' : `${where}, judge`
}

export function linesOfTools(said: Said | undefined): string {
  return (said?.tools ?? []).join('\n')
}

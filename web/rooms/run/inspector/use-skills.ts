/** The skills that the models of a run have read, up to the place of the scrubber. */
import { createSkillsUsed, skillTool } from '../../../../src/fold/skills-used.ts'
import { useResource } from '../../../data/resource.ts'
import type { Room } from '../use-room.ts'

/** Entries that are read for it: calls and results. */
const most = 200

/** `pdf`, or `pdf (references/forms.md)`. Undefined until it is known, or if none was read. */
export function useSkills({ id, model, windows }: Room): readonly string[] | undefined {
  const calls = model.tree.all
    .flatMap(({ marks }) => marks)
    .filter(({ type, note }) => (type === 'tool-call' || type === 'tool-result') && note === skillTool)
    .slice(0, most)
    .map(({ seq }) => seq)
    .toSorted((a, b) => a - b)
  const key = calls.length === 0 ? undefined : `skills ${id} ${calls.join(' ')}`
  return useResource(key, async () => {
    const used = createSkillsUsed()
    const found = await Promise.all(calls.map((seq) => windows.read({ after: seq - 1, before: seq + 1 })))
    for (const entry of found.flat()) used.apply(entry)
    return used.list()
  }).value
}

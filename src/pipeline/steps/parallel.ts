/** `parallel`: lists of steps that run at the same time. */
import { z } from 'zod'
import { check, child } from '../check.ts'
import { lazily } from '../lazily.ts'
import { enter, type StepContext } from '../reader.ts'
import { later, list, map, oneOf } from '../scalars.ts'
import { idName } from '../schema.ts'
import type { Node } from '../tree.ts'
import { noSteps } from './condition.ts'

const branchesWords = 'must be a map: name → list of steps'

export const parallelConfig = lazily(() =>
  map({
    branches: z
      .record(z.string(), list(later('step')).min(1, noSteps), branchesWords)
      .refine((branches) => Object.keys(branches).length > 0, 'has no branches; add one: name → list of steps')
      .describe('Lists of steps that run at the same time: name → steps. Branches do not see each other’s variables.'),
    order: oneOf(['declared', 'live'])
      .default('declared')
      .describe(
        'Order of several streamed answers for clients that receive one text. declared: as in the file. live: as they arrive.',
      ),
    onError: oneOf(['fail', 'continue'])
      .default('fail')
      .describe('fail: the first failure stops the other branches. continue: the other branches keep running.'),
  }),
)

export function readParallel(node: Node, { reader, place, id }: StepContext) {
  const parsed = check(parallelConfig(), node, reader.faults, 'the config of a parallel step')
  const map = child(node, 'branches')
  const branches = []
  for (const [name, { at, value }] of map?.kind === 'map' ? map.entries : []) {
    const fault = idName.safeParse(name).error?.issues[0]?.message
    if (fault !== undefined) reader.faults.add(at, `a branch name ${fault}`)
    branches.push({ name, steps: reader.readSteps(value, id, enter(place)) })
  }
  return parsed && { type: 'parallel' as const, config: { branches, order: parsed.order, onError: parsed.onError } }
}

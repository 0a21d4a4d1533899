/** `loop`: a list of steps again and again, over items or while something holds, at most `max` times. */
import { MillraceError } from '../../part/error.ts'
import { joinPath } from '../../part/path.ts'
import { evaluate } from '../../pipeline/evaluate.ts'
import type { LoopConfig } from '../../pipeline/pipeline.ts'
import type { Scope } from '../scope.ts'
import type { StepOutcome } from '../step.ts'
import { inContainer, runSteps, within } from '../walk.ts'

export function runLoop(scope: Scope, path: string, config: LoopConfig, at: <T>(value: T) => T): Promise<StepOutcome> {
  return inContainer(scope, path, { stepType: 'loop' }, async () => {
    const { input, env, state } = scope
    const items = config.over === undefined ? undefined : toItems(at(config.over), config.max)
    // One scope for all rounds: a round sees what the one before has set.
    const variables = new Map(scope.variables)
    const inner = within(scope, { variables })
    const values: unknown[] = []
    const rounds = items?.length ?? config.max
    for (let index = 0; index < rounds; index++) {
      const round = joinPath(path, index)
      variables.set('index', index)
      if (items !== undefined) variables.set(config.as, items[index])
      // A round that the log holds began because the condition held then.
      const goes = items !== undefined || state.has(round) || evaluate(config.while!, { input, variables, env })
      if (!goes) break
      const { value } = await inContainer(inner, round, { stepType: 'round' }, () =>
        runSteps(inner, config.steps, round, { answers: false, last: false }),
      )
      values.push(value)
    }
    return { value: values }
  })
}

function toItems(value: unknown, max: number): unknown[] {
  if (!Array.isArray(value)) throw new MillraceError('bad-value', `over must be a list, not ${JSON.stringify(value)}.`)
  if (value.length <= max) return value
  const cure = 'Raise max, or shorten the list.'
  throw new MillraceError('loop-too-long', `The list has ${value.length} items, and max is ${max}. ${cure}`)
}

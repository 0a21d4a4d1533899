/** `loop`: repeats a list of steps for each item or while a condition holds, at most `max` times. */
import { MillraceError } from '../../part/error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { joinPath } from '../../part/path.ts'
import { evaluate } from '../../pipeline/evaluate.ts'
import type { LoopConfig } from '../../pipeline/pipeline.ts'
import { inContainer, type Inside, type StepOutcome } from '../container.ts'
import { valuesOf, within, type Scope } from '../scope.ts'

export function runLoop(scope: Scope, path: string, config: LoopConfig, { at }: Inside): Promise<StepOutcome> {
  const { items, fault } = findItems(scope, path, config, at)
  const start = omitUndefined({ stepType: 'loop', kind: 'container' as const, items })
  return inContainer(scope, path, start, async () => {
    if (fault !== undefined) throw fault.error
    const { state } = scope
    // A finished loop is replayed for its values, with the recorded number of rounds.
    const finished = state.finished.has(path)
    // All rounds share one scope, so each sees the variables set by earlier rounds.
    const variables = new Map(scope.variables)
    const inner = within(scope, { variables })
    const values: unknown[] = []

    /** A recorded round runs again without evaluating its condition. */
    const goes = (index: number, round: string) => {
      if (finished || state.has(round)) return state.has(round)
      if (items !== undefined) return index < items.length
      return evaluate(config.while!, valuesOf(inner))
    }
    for (let index = 0; index < config.max; index++) {
      const round = joinPath(path, index)
      variables.set('index', index)
      if (items !== undefined) variables.set(config.as, items[index])
      if (!goes(index, round)) break
      const { value } = await inContainer(inner, round, { stepType: 'round', kind: 'container' }, () =>
        scope.runSteps(inner, config.steps, round, { answers: false, last: false }),
      )
      values.push(value)
    }
    return { value: values }
  })
}

/**
 * The recorded list, as it was when the loop began. Evaluating it again could differ, because the input or the process's
 * environment may have changed.
 */
function findItems({ state }: Scope, path: string, { over, max }: LoopConfig, at: Inside['at']): LoopItems {
  const items = state.lists.get(path)
  if (items !== undefined || over === undefined) return { items }
  try {
    return { items: toItems(at(over), max) }
  } catch (error) {
    // Thrown later, inside the step, so that the step fails.
    return { fault: { error } }
  }
}

interface LoopItems {
  items?: readonly unknown[] | undefined
  fault?: { error: unknown }
}

function toItems(value: unknown, max: number): unknown[] {
  if (!Array.isArray(value)) {
    throw new MillraceError('bad-value', `"over" must be a list, not ${JSON.stringify(value)}.`)
  }
  if (value.length <= max) return value
  const cure = 'Raise "max" or shorten the list.'
  throw new MillraceError('loop-too-long', `the list has ${value.length} items, but "max" is ${max}. ${cure}`)
}

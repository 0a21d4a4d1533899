/** `condition`: runs one of two lists of steps. A resumed run takes the recorded branch, since variables may have changed. */
import { joinPath } from '../../part/path.ts'
import { evaluate } from '../../pipeline/evaluate.ts'
import type { ConditionConfig } from '../../pipeline/pipeline.ts'
import { inContainer, type Inside, type StepOutcome } from '../container.ts'
import { valuesOf, within, type Scope } from '../scope.ts'

export function runCondition(
  scope: Scope,
  path: string,
  config: ConditionConfig,
  { place }: Inside,
): Promise<StepOutcome> {
  return inContainer(scope, path, { stepType: 'condition', kind: 'container' }, async () => {
    const { variables, state } = scope
    const began = (['then', 'else'] as const).find((name) => state.has(joinPath(path, name)))
    const branch = began ?? (evaluate(config.if, valuesOf(scope)) ? 'then' : 'else')
    const at = joinPath(path, branch)
    return inContainer(scope, at, { stepType: 'branch', kind: 'container' }, () =>
      scope.runSteps(within(scope, { variables: new Map(variables) }), config[branch], at, place),
    )
  })
}

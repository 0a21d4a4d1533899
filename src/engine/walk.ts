/**
 * Runs lists of steps. A new run and a continued run take the same path: a step that has finished in the log returns its value
 * again and emits nothing, so the walk reaches the point where the run stopped.
 */
import { joinPath } from '../part/path.ts'
import type { Step } from '../pipeline/pipeline.ts'
import type { Place, StepOutcome } from './container.ts'
import { asRecorded, type Scope } from './scope.ts'
import { containers, runPipelineStep } from './step.ts'
import { isWrapped, stepValue } from './step-value.ts'

/** Runs a list in order. Its value is that of the last step that ran. A step that is the answer ends the list. */
export async function runSteps(scope: Scope, steps: readonly Step[], base: string, place: Place): Promise<StepOutcome> {
  let outcome: StepOutcome = { value: null }
  for (const [i, step] of steps.entries()) {
    const path = joinPath(base, step.id)
    const finished = containers.has(step.type) && !isWrapped(scope, step) ? undefined : scope.state.finished.get(path)
    if (finished?.error !== undefined) throw asRecorded(finished.error)
    const last = place.last && i === steps.length - 1
    outcome = finished
      ? stepValue(scope, step, path, finished, place)
      : await runPipelineStep(scope, step, path, { ...place, last }, runSteps)
    if (step.result !== undefined) scope.variables.set(step.result, outcome.value)
    if (outcome.answer !== undefined) break
  }
  return outcome
}

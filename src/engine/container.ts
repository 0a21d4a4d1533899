/** Shared by all steps that contain lists of steps. */
import type { Pipeline, Step } from '../pipeline/pipeline.ts'
import { resolve } from '../pipeline/evaluate.ts'
import { inStep, asRecorded, valuesOf, type NewStep, type Scope } from './scope.ts'

export interface StepOutcome {
  value: unknown
  /** The step was the answer: the workflow ends with it. */
  answer?: { finishReason: string }
}

/** The position of a list of steps: whether its stream may be the answer, and whether no step follows it. */
export interface StepRole {
  answers: boolean
  last: boolean
}

/** Runs a list of steps under a path (`run-steps.ts`). A field of the scope, because `run-steps.ts` imports the containers. */
export type RunSteps = (scope: Scope, steps: readonly Step[], base: string, place: StepRole) => Promise<StepOutcome>

/** The further arguments of a container, besides its config. */
export interface Inside {
  place: StepRole
  /** Resolves the references in a template. */
  at: <T>(value: T) => T
}

/** Emits a container's start and finish. A container that has finished in the log runs again for its value and emits nothing. */
export async function inContainer(
  scope: Scope,
  path: string,
  start: NewStep,
  body: () => Promise<StepOutcome>,
): Promise<StepOutcome> {
  const finished = scope.state.finished.get(path)
  if (finished?.error !== undefined) throw asRecorded(finished.error)
  if (finished !== undefined) return body()
  return inStep(scope, path, start, async () => ({ value: await body() }))
}

/** A pipeline's value: `return` if it is set, else the last step's value if it has no `result`, else all variables. */
export function pipelineValue(scope: Scope, { workflow, return: shape }: Pipeline, last: StepOutcome): unknown {
  if (shape !== undefined) return resolve(shape, valuesOf(scope))
  if (last.answer !== undefined) return undefined
  return workflow.at(-1)?.result === undefined ? last.value : Object.fromEntries(scope.variables)
}

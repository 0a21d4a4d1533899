/** What all steps that contain lists of steps share. */
import type { Pipeline, Step } from '../pipeline/pipeline.ts'
import { resolve } from '../pipeline/resolve.ts'
import { inStep, asRecorded, type NewStep, type Scope } from './scope.ts'

export interface StepOutcome {
  value: unknown
  /** The step was the answer: nothing after it in the workflow runs. */
  answer?: { finishReason: string }
}

/** The position of a list of steps: whether its stream may be the answer, and whether it is the last thing to run. */
export interface Place {
  answers: boolean
  last: boolean
}

/** Runs a list of steps under a path (`walk.ts`). Passed as a value because `walk.ts` imports the containers. */
export type RunSteps = (scope: Scope, steps: readonly Step[], base: string, place: Place) => Promise<StepOutcome>

/** What a container receives besides its config. */
export interface Inside {
  place: Place
  /** Resolves the references in a template. */
  at: <T>(value: T) => T
  runSteps: RunSteps
}

/** Emits a container's start and finish. One that has finished in the log is walked again for its value and emits nothing. */
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
  const { input, variables, env } = scope
  if (shape !== undefined) return resolve(shape, { input, variables, env: { ...env } })
  if (last.answer !== undefined) return undefined
  return workflow.at(-1)?.result === undefined ? last.value : Object.fromEntries(variables)
}

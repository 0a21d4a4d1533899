/** Steps that hold lists of steps: what all of them share, whoever walks the lists. */
import type { StepStart } from '../part/part.ts'
import type { Pipeline, Step } from '../pipeline/pipeline.ts'
import { resolve } from '../pipeline/resolve.ts'
import { inStep, toldBefore, type Scope } from './scope.ts'

export interface StepOutcome {
  value: unknown
  /** The step was the answer: nothing after it in the workflow runs. */
  answer?: { finishReason: string }
}

/** Where a list of steps stands: whether what it streams may be the answer, and whether anything comes after it. */
export interface Place {
  answers: boolean
  last: boolean
}

/** Walks a list of steps under a path (`walk.ts`). Handed to containers, because what walks them runs them. */
export type RunSteps = (scope: Scope, steps: readonly Step[], base: string, place: Place) => Promise<StepOutcome>

/** What a container is given beside its config. */
export interface Inside {
  place: Place
  /** Its templates with their references resolved. */
  at: <T>(value: T) => T
  runSteps: RunSteps
}

/** Brackets a container. One that the log holds finished is walked for its value and says nothing. */
export async function inContainer(
  scope: Scope,
  path: string,
  start: Omit<StepStart, 'type' | 'attempt'>,
  body: () => Promise<StepOutcome>,
): Promise<StepOutcome> {
  const finished = scope.state.finished.get(path)
  if (finished?.error !== undefined) throw toldBefore(finished.error)
  if (finished !== undefined) return body()
  return inStep(scope, path, start, async () => ({ value: await body() }))
}

/** The value of a whole pipeline, once its steps have run: `return`, else an unnamed last step's, else all variables. */
export function pipelineValue(scope: Scope, { workflow, return: shape }: Pipeline, last: StepOutcome): unknown {
  const { input, variables, env } = scope
  if (shape !== undefined) return resolve(shape, { input, variables, env: { ...env } })
  if (last.answer !== undefined) return undefined
  return workflow.at(-1)?.result === undefined ? last.value : Object.fromEntries(variables)
}

/**
 * Lists of steps, nested as deep as a file nests them. Walking is the same for a fresh run and for one that goes on: what
 * the log holds finished gives its value again and says nothing, so the walk comes to where the run stood.
 */
import type { StepStart } from '../part/part.ts'
import { joinPath } from '../part/path.ts'
import type { Pipeline, Step } from '../pipeline/pipeline.ts'
import { resolve } from '../pipeline/resolve.ts'
import { inStep, toldBefore, type Scope } from './scope.ts'
import { runPipelineStep, stepValue, type StepOutcome } from './step.ts'

/** Where a list of steps stands: whether what it streams may be the answer, and whether anything comes after it. */
export interface Place {
  answers: boolean
  last: boolean
}

/** Runs a list in order. Its value is that of the last step that ran; a step that answers ends it. */
export async function runSteps(scope: Scope, steps: readonly Step[], base: string, place: Place): Promise<StepOutcome> {
  let outcome: StepOutcome = { value: null }
  for (const [i, step] of steps.entries()) {
    const path = joinPath(base, step.id)
    const finished = isContainer(step) ? undefined : scope.state.finished.get(path)
    if (finished?.error !== undefined) throw toldBefore(finished.error)
    const last = place.last && i === steps.length - 1
    outcome = finished
      ? stepValue(scope, step, path, finished, place)
      : await runPipelineStep(scope, step, path, { ...place, last })
    if (step.result !== undefined) scope.variables.set(step.result, outcome.value)
    if (outcome.answer !== undefined) break
  }
  return outcome
}

/** The value of a whole pipeline, once its steps have run: `return`, else an unnamed last step's, else all variables. */
export function pipelineValue(scope: Scope, { workflow, return: shape }: Pipeline, last: StepOutcome): unknown {
  const { input, variables, env } = scope
  if (shape !== undefined) return resolve(shape, { input, variables, env: { ...env } })
  if (last.answer !== undefined) return undefined
  return workflow.at(-1)?.result === undefined ? last.value : Object.fromEntries(variables)
}

/** Steps whose value is not recorded but walked again: it consists of what the steps inside recorded. */
function isContainer({ type }: Step): boolean {
  return type === 'condition' || type === 'loop' || type === 'parallel' || type === 'call-agent'
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

/** The same scope with something else in it. Everything not named is looked up in the outer one, live. */
export function within(scope: Scope, changes: Partial<Scope>): Scope {
  // Defined, not assigned: `input` of a run is a getter, which an assignment would run into.
  return Object.create(scope, Object.getOwnPropertyDescriptors(changes)) as Scope
}

/** Shared by all steps that contain lists of steps. */
import type { Pipeline, Step, BuiltinStep } from '../pipeline/pipeline.ts'
import { resolve } from '../pipeline/evaluate.ts'
import { inStep, asRecorded, valuesOf, type NewStep, type Scope } from './scope.ts'
import type { EntryOf } from '../part/entry.ts'
import { handoffIn } from './handoff.ts'
import { joinPath } from '../part/path.ts'
import { noUsage } from '../part/usage.ts'
import { answersBy, cliAgentOutcome } from './steps/cli-agent.ts'
import { llmResult } from './steps/llm.ts'
import { routerResult } from './steps/router.ts'

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

/* The outcomes of steps that have finished in the log, for a run that continues. */

/** Whether the program has replaced the built-in step of this type by its own handler. */
export function isWrapped({ registry }: Scope, step: Step): step is BuiltinStep {
  return step.type !== 'custom' && registry.steps.has(step.type)
}

/** The outcome of a step that has finished in the log. For a tool loop it is derived from its replies. */
export function stepValue(
  scope: Scope,
  step: Step,
  path: string,
  finish: EntryOf<'step-finish'>,
  place: StepRole,
): StepOutcome {
  if (!isWrapped(scope, step)) return builtinValue(scope, step, path, finish, place)
  const { result: value, finishReason } = finish
  return { value, ...(finishReason !== undefined && place.answers ? { answer: { finishReason } } : undefined) }
}

export function builtinValue(
  scope: Scope,
  step: Step,
  path: string,
  finish: EntryOf<'step-finish'>,
  place: StepRole,
): StepOutcome {
  const { answers } = place
  if (step.type === 'cli-agent') return cliAgentOutcome(scope, path, finish, answersBy(step.config, place))
  if (step.type !== 'llm' && step.type !== 'router') {
    const streamed = answers && step.type === 'custom' && scope.state.finished.has(joinPath(path, 1))
    return { value: finish.result, ...(streamed ? { answer: { finishReason: 'stop' } } : undefined) }
  }
  const usage = finish.usage ?? scope.state.usageBelow(path)
  if (step.type === 'router') {
    return { value: routerResult(scope, path, usage ?? noUsage, finish.finishReason ?? 'other') }
  }
  const { list } = scope.state.loopAt(path)
  const value = llmResult(list, usage ?? noUsage, step.config.output?.schema, handoffIn(scope.state, list))
  if (!step.config.stream || !answers) return { value }
  return { value, answer: { finishReason: finish.finishReason ?? 'stop' } }
}

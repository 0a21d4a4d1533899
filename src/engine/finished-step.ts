/** The outcomes of steps that have finished in the log, for a run that continues. */
import type { EntryOf } from '../part/entry.ts'
import { joinPath } from '../part/path.ts'
import { noUsage } from '../part/usage.ts'
import type { BuiltinStep, Step } from '../pipeline/pipeline.ts'
import type { StepOutcome, StepRole } from './container.ts'
import type { Scope } from './scope.ts'
import { answersBy, cliAgentOutcome } from './steps/cli-agent.ts'
import { llmResult } from './steps/llm.ts'
import { routerResult } from './steps/router.ts'
import { handoffIn } from './taken-over.ts'

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
  const value = llmResult(list, usage ?? noUsage, step.config.output?.schema, handoffIn(scope.state, path))
  if (!step.config.stream || !answers) return { value }
  return { value, answer: { finishReason: finish.finishReason ?? 'stop' } }
}

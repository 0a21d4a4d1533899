/**
 * Runs a built-in step type that a program has replaced with its own handler. The handler is one step; each call of the built-in is
 * a step below it. If the handler was interrupted (by a crash, or because the run waits for its client) after its built-in had
 * started, it is called again and the built-in resumes.
 */
import { MillraceError } from '../../part/error.ts'
import { joinPath } from '../../part/path.ts'
import type { StepOutcome } from '../container.ts'
import type { PrimitiveHandler } from '../registry.ts'
import { inStep, Suspended, unheld, type Scope } from '../scope.ts'
import type { BuiltinStep } from '../../pipeline/pipeline.ts'
import { runCustom } from './custom.ts'

export interface WrappedOptions {
  step: BuiltinStep
  handler: PrimitiveHandler
  /** The step's config with its references resolved, as far as possible before the step runs. */
  config: unknown
  answers: boolean
  /** Runs the built-in, or restores its outcome from the log. */
  original(step: BuiltinStep, path: string): Promise<StepOutcome>
}

/** The recorded type of the outer step. The inner step has the type of the built-in. */
export const handlerStep = 'handler'

export async function runWrapped(scope: Scope, path: string, options: WrappedOptions): Promise<StepOutcome> {
  const { step, handler, config, answers, original } = options
  const innerPath = (n: number) => joinPath(path, n === 1 ? step.id : `${step.id}.${n}`)
  const { open, asked } = scope.state
  if (open.steps.has(path) && !asked.has(path) && !scope.state.has(innerPath(1))) {
    throw new MillraceError('interrupted', 'it was interrupted by a crash and is not run again.')
  }
  return inStep(scope, path, { stepType: handlerStep, kind: 'custom' }, async () => {
    await scope.stored()
    scope.signal.throwIfAborted()
    let calls = 0
    let answer: StepOutcome['answer']
    /** Set when the run waits or stops, so that a handler's `catch` cannot swallow it. */
    let unwound: { reason: unknown } | undefined
    const running: Promise<unknown>[] = []
    const builtin = (type: string, changed: unknown) => {
      if (type !== step.type) {
        const cure = `Call the handler that yours replaced: save handlerRegistry["${step.type}"] before you replace it.`
        throw new MillraceError(
          'bad-handler',
          `it called the built-in "${type}" in a step of type "${step.type}". ${cure}`,
        )
      }
      if (answer !== undefined) {
        throw new MillraceError(
          'bad-handler',
          'it called the built-in again after the built-in had streamed the answer.',
        )
      }
      const run = original({ ...step, config: changed } as BuiltinStep, innerPath(++calls)).then(
        (outcome) => {
          answer = outcome.answer
          return outcome.value
        },
        (error: unknown) => {
          if (error instanceof Suspended || scope.signal.aborted) unwound ??= { reason: error }
          throw error
        },
      )
      running.push(run.catch(() => undefined))
      return run
    }
    const settled = () => Promise.all(running)
    const ran = await runCustom(unheld(scope), path, handler, config, {
      builtin,
      settled,
      hasAnswered: () => answer !== undefined,
    }).catch(async (error: unknown) => {
      await settled()
      throw unwound === undefined ? error : unwound.reason
    })
    await settled()
    if (unwound !== undefined) throw (unwound as { reason: unknown }).reason
    const finish = ran.answered ? { finishReason: 'stop' } : answer
    const outcome: StepOutcome = {
      value: ran.value,
      ...(finish !== undefined && answers ? { answer: finish } : undefined),
    }
    return {
      value: outcome,
      result: ran.value,
      ...(outcome.answer === undefined ? undefined : { finishReason: outcome.answer.finishReason }),
    }
  })
}

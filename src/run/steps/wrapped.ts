/**
 * A built-in step type that a program has replaced by a handler of its own. The handler is a step of its own; the built-in, when
 * the handler calls it, a step below. A handler that was cut off (by a crash, or because the run waits for its client) is called
 * again when its built-in had begun, and the built-in goes on where it stood.
 */
import { MillraceError } from '../../part/error.ts'
import { joinPath } from '../../part/path.ts'
import type { StepOutcome } from '../container.ts'
import type { PrimitiveHandler } from '../ports.ts'
import { inStep, Suspended, type Scope } from '../scope.ts'
import type { BuiltinStep } from '../../pipeline/pipeline.ts'
import { runCustom } from './custom.ts'

export interface WrappedOptions {
  step: BuiltinStep
  handler: PrimitiveHandler
  /** The step's config with its references replaced, where nothing is left to be read later. */
  config: unknown
  answers: boolean
  /** Runs the built-in, or reads what the log holds of it. */
  original(step: BuiltinStep, path: string): Promise<StepOutcome>
}

/** The type of the outer step in the log: what is true of an `llm` step is true of the inner one. */
export const handlerStep = 'handler'

export async function runWrapped(scope: Scope, path: string, options: WrappedOptions): Promise<StepOutcome> {
  const { step, handler, config, answers, original } = options
  const innerPath = (n: number) => joinPath(path, n === 1 ? step.id : `${step.id}.${n}`)
  if (scope.state.open.steps.has(path) && !scope.state.has(innerPath(1))) {
    throw new MillraceError('interrupted', 'it was cut off by a crash and is not run a second time.')
  }
  return inStep(scope, path, { stepType: handlerStep }, async () => {
    await scope.stored()
    scope.signal.throwIfAborted()
    let calls = 0
    let answer: StepOutcome['answer']
    /** A run that waits or stops: no handler's `catch` may keep it. */
    let unwound: { reason: unknown } | undefined
    const running: Promise<unknown>[] = []
    const builtin = (type: string, changed: unknown) => {
      if (type !== step.type) {
        const cure = `Call the handler that yours has replaced: handlerRegistry["${step.type}"] as it was before.`
        throw new MillraceError(
          'bad-handler',
          `it called the built-in "${type}" in a step of type "${step.type}". ${cure}`,
        )
      }
      if (answer !== undefined) {
        throw new MillraceError('bad-handler', 'it called the built-in again after that had streamed the answer.')
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
    const ran = await runCustom(scope, path, handler, config, {
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

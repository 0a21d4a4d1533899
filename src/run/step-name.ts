/** Which step of a pipeline failed, as messages say it. */
import { MillraceError, unexplained } from '../part/error.ts'
import { isUnder } from '../part/path.ts'
import type { Step } from '../pipeline/pipeline.ts'

/** The step of a pipeline that runs: what lies under it (model calls, tool calls, rounds, branches) is its own affair. */
export interface StepName {
  path: string
  /** As its file has it; a called agent's stands behind that of the call: `ask/answer`. */
  id: string
  type: string
}

export function toStepName(above: StepName | undefined, { id, ...step }: Step, path: string): StepName {
  const calls = above?.type === 'call-agent' ? above.id : above?.id.split('/').slice(0, -1).join('/')
  return { path, id: calls ? `${calls}/${id}` : id, type: step.type === 'custom' ? step.stepType : step.type }
}

export function formatStepName({ id, type }: StepName): string {
  return `Step "${id}" (${type})`
}

/** The failure with its step's name before it, once: what failed inside has been named there. */
export function nameFailure(step: StepName, error: MillraceError): MillraceError {
  if (error.step !== undefined && isUnder(error.step, step.path)) return error
  const { code, message, status, retryAfter, detail } = error
  const text = message === unexplained ? ' failed.' : `: ${message}`
  const options = { status, retryAfter, detail, step: step.path, cause: error.cause }
  return new MillraceError(code, formatStepName(step) + text, options)
}

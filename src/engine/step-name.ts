/** Names the failed step of a pipeline, for messages. */
import { MillraceError, unexplained } from '../part/error.ts'
import { isUnder } from '../part/path.ts'
import type { Step } from '../pipeline/pipeline.ts'

/** The current step of a pipeline. Its inner steps (model calls, tool calls, iterations, branches) have no name of their own. */
export interface StepName {
  path: string
  /** The id from the file. In a called agent, the id of the call comes first: `ask/answer`. */
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

/** Prefixes the failure's message with the step's name, unless a step inside has done so. */
export function nameFailure(step: StepName, error: MillraceError): MillraceError {
  if (error.step !== undefined && isUnder(error.step, step.path)) return error
  const { code, message, status, retryAfter, which, detail } = error
  const text = message === unexplained ? ' failed.' : `: ${message}`
  const options = { status, retryAfter, which, detail, step: step.path, cause: error.cause }
  return new MillraceError(code, formatStepName(step) + text, options)
}

/**
 * Application code may throw outside of any awaited call: in a timer, an event handler or a floating promise. This identifies the run of such an
 * error.
 */
export interface Origin {
  run: string
  /** The innermost step that was running. */
  step?: StepName
}

/** Runs `body` so that errors from anything it starts can be traced back to the origin. */
export type Attribute = <T>(origin: Origin, body: () => T) => T

export const unattributed: Attribute = (_, body) => body()

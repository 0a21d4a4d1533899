import type { AnswerContext } from '../../answer/answer-context.ts'
import type { Handler } from '../handler.ts'
import type { Admission } from '../http/admission.ts'

/** What all sockets of a server share. */
export interface SessionContext extends AnswerContext {
  admission: Admission | undefined
  /** The HTTP routes. */
  handler: Handler
  /** Aborts when the server has closed. */
  signal: AbortSignal
  /** +1 when a tool result begins to wait for its request, -1 when it ends. */
  onWaiting(change: 1 | -1): void
}

import type { Runtime } from '../runtime/runtime.ts'

/** What the answer to one client needs, whatever the transport. */
export interface AnswerContext {
  runtime: Runtime
  /** ms of silence after which a keep-alive is sent. */
  keepAliveMs: number
  /** Called with errors of the server itself, such as a failing store. */
  onError: (error: unknown) => void
}

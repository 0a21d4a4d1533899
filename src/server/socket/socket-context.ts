import type { AnswerContext } from '../../answer/answer-context.ts'
import type { Handler } from '../handler.ts'
import type { RateLimit } from '../http/rate-limit.ts'

/** What the Socket.IO binding serves, who may use it, and its limits. As for {@link HandlerOptions}. */
export interface SocketOptions extends Omit<AnswerContext, 'keepAliveMs'> {
  /** Every client must then send it as `auth.token`. */
  apiKey?: string
  localOnly: boolean
  allowedOrigins?: readonly string[]
  /** The HTTP routes, with the same key and the same limits. */
  handler: Handler
  /** The maximum size of a message. */
  maxBodyBytes?: number
  /** Of starts from one address. */
  rateLimit?: RateLimit
}

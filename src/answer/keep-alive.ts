/** Keep-alives: how long a client may hear nothing, and what it hears then. */
import { isBoundToRequest } from '../async/bound-to-request.ts'
import type { Piece, Wire } from '../wire/wire.ts'

/**
 * ms of silence after which a keep-alive is sent, unless the program says otherwise. Bun's server ends a response after 10 seconds of
 * silence. Where the platform ends what a request began, only a write shows that the client has left: the model would go on meanwhile.
 */
export function defaultKeepAliveMs(): number {
  return isBoundToRequest() ? 2000 : 8000
}

/** What is sent after a period of silence: before anything was written, and later. Empty for nothing. */
export interface KeepAlive<Out> {
  first: Out
  later: Out
}

/**
 * Plain text has nothing to send that is no text. Where only a write shows that the client has left it sends what nobody sees: a space
 * before the answer, because the answer may be JSON, and in it a zero-width one.
 */
export function keepAliveOf<Out extends Piece>({ keepAlive, isRaw }: Wire<never, Out>): KeepAlive<Out> {
  const isText = isRaw === true && typeof keepAlive === 'string' && keepAlive === ''
  if (!isText || !isBoundToRequest()) return { first: keepAlive, later: keepAlive }
  return { first: ' ', later: '\u200B' } as unknown as KeepAlive<Out>
}

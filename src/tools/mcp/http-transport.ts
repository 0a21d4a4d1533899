/** MCP over streamable HTTP: the SDK's transport, extended to detect a lost server at once. */
import {
  isJSONRPCRequest,
  StreamableHTTPClientTransport,
  type JSONRPCMessage,
  type TransportSendOptions,
} from '@modelcontextprotocol/client'
import { MillraceError } from '../../part/error.ts'
import { boundResponse } from '../../models/limits/bounded-response.ts'
import type { ReadLimits } from '../../models/limits/read-limits.ts'
import { discardBody, fetchWithinOrigin } from '../../models/limits/within-origin.ts'
import { authorizedFetch, type Fetch } from './auth/authorized-fetch.ts'
import type { TokenSource } from './auth/token-source.ts'
import type { McpHttpServer } from './server.ts'

/** ms allowed for terminating the session on close. */
const goodbye = 1000

export class HttpTransport extends StreamableHTTPClientTransport {
  /** Why the connection ended; undefined while it is open and if we closed it. */
  failure: string | undefined
  /** See {@link StdioTransport}. */
  readonly fateDetail = undefined
  /** Set if we closed the connection because of a message of the server. */
  refusal: MillraceError | undefined
  /** Only a child process has stderr output. */
  readonly lastWords = undefined
  #closing: Promise<void> | undefined

  constructor(
    { url, headers }: McpHttpServer,
    { who, limits, tokens }: { who: string; limits: ReadLimits; tokens?: TokenSource | undefined },
  ) {
    let lose = (_error: unknown) => {}
    const send: Fetch = async (target, init) => {
      try {
        const response = await fetchWithinOrigin(fetch, discardBody, String(target), init ?? {}, who)
        const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
        return boundResponse(response, { who, limits, shape: isStream ? 'messages' : 'message' }, (error) =>
          lose(error),
        )
      } catch (error) {
        // No response at all: end the other requests too. The SDK would let them wait for their timeouts.
        if (init?.signal?.aborted !== true) lose(error)
        throw error
      }
    }
    super(new URL(url), {
      requestInit: { headers: { ...headers } },
      // Reconnect a broken stream once, because servers may end one on purpose, and soon, so that callers of a dead server
      // do not wait long.
      reconnectionOptions: {
        initialReconnectionDelay: 100,
        maxReconnectionDelay: 5000,
        reconnectionDelayGrowFactor: 2,
        maxRetries: 1,
      },
      fetch: tokens === undefined ? send : authorizedFetch(send, tokens, who),
    })
    lose = (error) => {
      if (error instanceof MillraceError) this.refusal ??= error
      this.failure ??= networkFault(error)
      void this.close()
    }
  }

  override send(message: JSONRPCMessage, options?: TransportSendOptions & object): Promise<void> {
    if (!isJSONRPCRequest(message)) return super.send(message, options)
    // The SDK's own client ignores this event. If the response has arrived, no request waits for the id any more.
    const onRequestStreamEnd = () => {
      const error = { code: streamEnded, message: 'the response stream ended early' }
      this.onmessage?.({ jsonrpc: '2.0', id: message.id, error })
    }
    const { traceparent } = (message.params?.['_meta'] ?? {}) as { traceparent?: unknown }
    const headers = typeof traceparent === 'string' ? { headers: { ...options?.headers, traceparent } } : undefined
    return super.send(message, { ...options, ...headers, onRequestStreamEnd })
  }

  /** Also ends the session on the server, waiting up to a second. Never rejects. */
  override close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    if (this.failure === undefined) {
      let timer
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, goodbye)))
      // A server that rejects this has already dropped the session.
      await Promise.race([this.terminateSession().catch(() => undefined), late])
      clearTimeout(timer)
    }
    await super.close()
  }
}

/** JSON-RPC error code (from the implementation-defined range) for a response stream that ended early. */
export const streamEnded = -32_090

function networkFault(error: unknown): string {
  const cause = (error as { cause?: { code?: unknown } }).cause
  if (cause?.code === 'ECONNREFUSED') return 'nothing listens at its url (ECONNREFUSED)'
  if (cause?.code === 'ENOTFOUND') return 'the host of its url does not exist (ENOTFOUND)'
  return typeof cause?.code === 'string' ? `the connection failed (${cause.code})` : 'the connection failed'
}

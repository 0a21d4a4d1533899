/** MCP over streamable HTTP: the SDK's transport, made to notice at once that the server is gone. */
import {
  isJSONRPCRequest,
  StreamableHTTPClientTransport,
  type JSONRPCMessage,
  type TransportSendOptions,
} from '@modelcontextprotocol/client'
import { MillraceError } from '../../part/error.ts'
import { boundResponse } from '../outside/bounded-response.ts'
import type { ReadLimits } from '../outside/read-limits.ts'
import { fetchWithinOrigin } from '../outside/within-origin.ts'
import type { McpHttpServer } from './server.ts'

/** ms to say goodbye to the session when closing. */
const goodbye = 1000

export class HttpTransport extends StreamableHTTPClientTransport {
  /** Why the connection ended, once it has, unless it was closed from here. */
  fate: string | undefined
  /** See {@link StdioTransport}. */
  readonly fateDetail = undefined
  /** Why the connection was closed from here because of what the server sent. */
  refusal: MillraceError | undefined
  /** What a program would have printed. */
  readonly lastWords = undefined
  #closing: Promise<void> | undefined

  constructor({ url, headers }: McpHttpServer, { who, limits }: { who: string; limits: ReadLimits }) {
    let lose = (_error: unknown) => {}
    super(new URL(url), {
      requestInit: { headers: { ...headers } },
      // A stream that breaks is taken up once again (a server may end one on purpose), and soon: whoever waits for a
      // dead server should not wait for long.
      reconnectionOptions: {
        initialReconnectionDelay: 100,
        maxReconnectionDelay: 5000,
        reconnectionDelayGrowFactor: 2,
        maxRetries: 1,
      },
      fetch: async (target, init) => {
        try {
          const response = await fetchWithinOrigin(fetch, String(target), init ?? {}, who)
          const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
          return boundResponse(response, { who, limits, shape: isStream ? 'messages' : 'message' }, (error) =>
            lose(error),
          )
        } catch (error) {
          // No answer at all: the other requests, which the SDK would let wait for their timeout, end with this one.
          if (init?.signal?.aborted !== true) lose(error)
          throw error
        }
      },
    })
    lose = (error) => {
      if (error instanceof MillraceError) this.refusal ??= error
      this.fate ??= networkFault(error)
      void this.close()
    }
  }

  override send(message: JSONRPCMessage, options?: TransportSendOptions & object): Promise<void> {
    if (!isJSONRPCRequest(message)) return super.send(message, options)
    // The SDK tells this to whoever sends, and its own client does not listen. After an answer nobody waits for the id.
    const onRequestStreamEnd = () => {
      const error = { code: streamEnded, message: 'the answer broke off' }
      this.onmessage?.({ jsonrpc: '2.0', id: message.id, error })
    }
    return super.send(message, { ...options, onRequestStreamEnd })
  }

  /** Ends the session on the server as well, if it answers soon. Never rejects. */
  override close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    if (this.fate === undefined) {
      let timer
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, goodbye)))
      // A server that does not want to hear it has forgotten us already.
      await Promise.race([this.terminateSession().catch(() => undefined), late])
      clearTimeout(timer)
    }
    await super.close()
  }
}

/** The JSON-RPC code (of the range left to implementations) under which a call learns that its stream ended early. */
export const streamEnded = -32_090

function networkFault(error: unknown): string {
  const cause = (error as { cause?: { code?: unknown } }).cause
  if (cause?.code === 'ECONNREFUSED') return 'nothing listens there (ECONNREFUSED)'
  if (cause?.code === 'ENOTFOUND') return 'there is no such host (ENOTFOUND)'
  return typeof cause?.code === 'string' ? `the connection failed (${cause.code})` : 'the connection failed'
}

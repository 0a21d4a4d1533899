/** MCP over streamable HTTP: the SDK's transport, made to notice at once that the server is gone. */
import {
  isJSONRPCRequest,
  StreamableHTTPClientTransport,
  type JSONRPCMessage,
  type TransportSendOptions,
} from '@modelcontextprotocol/client'
import type { McpHttpServer } from './server.ts'

/** ms to say goodbye to the session when closing. */
const goodbye = 1000

export class HttpTransport extends StreamableHTTPClientTransport {
  /** Why the connection ended, once it has, unless it was closed from here. */
  fate: string | undefined
  /** See {@link StdioTransport}. */
  readonly fateDetail = undefined
  /** What a program would have printed. */
  readonly lastWords = undefined
  #closing: Promise<void> | undefined

  constructor({ url, headers }: McpHttpServer) {
    let lose = (_fate: string) => {}
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
          return await fetch(target, init)
        } catch (error) {
          // No answer at all: the other requests, which the SDK would let wait for their timeout, end with this one.
          if (init?.signal?.aborted !== true) lose(networkFault(error))
          throw error
        }
      },
    })
    lose = (fate) => {
      this.fate ??= fate
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

/** A transport for `useChat` of the AI SDK, whose stop stops the run on the server. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'
import { toNamedTools, toOffer, type ClientTools } from './client-tool.ts'
import type { MillraceClient } from './client.ts'
import { readSse } from './follow.ts'

/** Options of `createChatTransport`. */
export interface ChatTransportOptions {
  client: MillraceClient
  /** The agent's id or an alias. */
  agent: string
  /** Tools that run in the page. `useChat` runs them: `onToolCall` and `addToolOutput`. */
  tools?: ClientTools
  /** Additional keys of `$input`. */
  body?: Record<string, unknown>
  /** `server`, for an agent with `history: server`: only the newest message is sent. Default `client`. */
  history?: 'client' | 'server'
}

/** The transport interface of `useChat`. The types are those of the AI SDK, which need not be installed. */
interface SendOptions {
  trigger: 'submit-message' | 'regenerate-message'
  chatId: string
  messageId: string | undefined
  messages: readonly { id: string; role: string }[]
  abortSignal: AbortSignal | undefined
  headers?: Record<string, string> | Headers
  body?: object
}

interface ReconnectOptions {
  chatId: string
  abortSignal?: AbortSignal | undefined
  headers?: Record<string, string> | Headers
}

/** `useChat({ transport: createChatTransport({ client, agent }), resume: true })`. */
export function createChatTransport({ client, agent, tools, body: always, history }: ChatTransportOptions) {
  const offered = tools === undefined ? undefined : { tools: toNamedTools(tools).map(toOffer) }
  /** By chat: the run whose answer has not been read to its end. If its stream breaks, the run may end before the page asks again. */
  const unread = new Map<string, string>()
  const headersOf = (headers: Record<string, string> | Headers = {}) => ({
    ...Object.fromEntries(new Headers(headers)),
    'x-millrace-ui': '7',
  })

  return {
    /** The server sends an answer from its start. */
    resumeStreamIsReplay: true as const,

    async sendMessages({ trigger, chatId, messageId, messages, abortSignal, headers, body }: SendOptions) {
      if (history === 'server' && trigger === 'regenerate-message') {
        const cure = 'Use client.thread(id).regenerate(runId): the id of an answer is that of its run.'
        throw new MillraceError('bad-input', `The server keeps this conversation. ${cure}`)
      }
      const sent = history === 'server' ? messages.slice(-1) : messages
      const turn = { agentId: agent, id: chatId, trigger, messages: sent, ...omitUndefined({ messageId }) }
      const response = await client.request('/api/chat?format=ui', {
        method: 'POST',
        accept: 'text/event-stream',
        headers: headersOf(headers),
        body: { ...offered, ...always, ...body, ...turn },
      })
      return chunksOf(response, chatId, abortSignal)
    },

    async reconnectToStream({ chatId, abortSignal, headers }: ReconnectOptions) {
      const ask = (path: string) => client.request(path, { accept: 'text/event-stream', headers: headersOf(headers) })
      let response = await ask(`/api/chat/${encodeURIComponent(chatId)}/stream?format=ui`)
      const over = unread.get(chatId)
      if (response.status === 204 && over !== undefined) {
        const path = `/api/runs/${encodeURIComponent(over)}/replay?format=ui&speed=max`
        // It may be deleted, or these routes closed: then there is nothing to read.
        response = await ask(path).catch(() => response)
      }
      if (response.status === 204) return null
      // Strict mode unmounts a component that has just begun to read: that is no stop.
      if (!abortSignal?.aborted) return chunksOf(response, chatId, abortSignal)
      await response.body?.cancel()
      return null
    },
  }

  /** The signal is that of `stop()`. It is not given to `fetch`: the run would go on, and its id be unknown. */
  function chunksOf({ body, headers }: Response, chat: string, signal: AbortSignal | undefined): ReadableStream<any> {
    const runId = headers.get('x-millrace-run-id')
    if (runId !== null) unread.set(chat, runId)
    const events = readSse(body!)
    let isStopped = false
    const stop = () => {
      isStopped = true
      unread.delete(chat)
      const stopped = runId === null ? Promise.resolve() : client.stop(runId)
      // A server that cannot be reached is left.
      void stopped.catch(() => undefined).then(() => events.return(undefined))
    }
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await events.next().catch((cause: unknown) => {
          throw cutOff(cause)
        })
        if (!done && value !== '[DONE]') return controller.enqueue(JSON.parse(value))
        signal?.removeEventListener('abort', stop)
        // Also a proxy that ends the body early: half an answer must not look like a whole one.
        if (done && !isStopped) throw cutOff()
        if (!done && unread.get(chat) === runId) unread.delete(chat)
        controller.close()
      },
      // The reader has left, which is no stop: the run has its own policy.
      cancel: () => void events.return(undefined),
    })
  }
}

function cutOff(cause?: unknown): MillraceError {
  const cure = 'resumeStream() of useChat reads it again.'
  return new MillraceError(
    'connection-lost',
    `The answer was cut off: the connection ended before the run did. ${cure}`,
    { cause },
  )
}

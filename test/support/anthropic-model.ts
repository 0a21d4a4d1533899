/** A server of Anthropic's Messages API, for coding agents: each request is answered by a function. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ModelRequest {
  system?: unknown
  messages: { role: string; content: unknown }[]
  tools?: { name: string }[]
  stream?: boolean
}

/** What the model says: a text, or the call of a tool. */
export type ModelReply = string | { id: string; name: string; input: object }

export interface AnthropicModel {
  url: string
  /** Those with tools: programs also ask for titles and summaries. */
  requests: ModelRequest[]
  close(): Promise<void>
}

const usage = { input_tokens: 10, output_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }

export async function startAnthropicModel(answer: (request: ModelRequest) => ModelReply): Promise<AnthropicModel> {
  const requests: ModelRequest[] = []
  let count = 0
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const text = (await incoming.setEncoding('utf8').toArray()).join('')
      if (!/^\/v1\/messages(?:\?|$)/u.test(incoming.url ?? '')) {
        const isCount = incoming.url?.startsWith('/v1/messages/count_tokens') === true
        return void outgoing.writeHead(isCount ? 200 : 404).end(isCount ? '{"input_tokens":10}' : '{}')
      }
      const request = JSON.parse(text) as ModelRequest
      const isTurn = (request.tools?.length ?? 0) > 0
      if (isTurn) requests.push(request)
      const reply = isTurn ? answer(request) : 'A title'
      const block = typeof reply === 'string' ? { type: 'text', text: reply } : { type: 'tool_use', ...reply }
      const stopReason = typeof reply === 'string' ? 'end_turn' : 'tool_use'
      const message = { id: `msg_${++count}`, type: 'message', role: 'assistant', model: 'claude-fake', usage }
      if (request.stream !== true) {
        const whole = { ...message, content: [block], stop_reason: stopReason, stop_sequence: null }
        return void outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
      }
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' })
      const send = (type: string, fields: object) =>
        outgoing.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`)
      send('message_start', { message: { ...message, content: [], stop_reason: null, stop_sequence: null } })
      if (typeof reply === 'string') {
        send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
        send('content_block_delta', { index: 0, delta: { type: 'text_delta', text: reply } })
      } else {
        send('content_block_start', { index: 0, content_block: { ...block, input: {} } })
        const delta = { type: 'input_json_delta', partial_json: JSON.stringify(reply.input) }
        send('content_block_delta', { index: 0, delta })
      }
      send('content_block_stop', { index: 0 })
      send('message_delta', { delta: { stop_reason: stopReason, stop_sequence: null }, usage })
      send('message_stop', {})
      outgoing.end()
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** All that a request says, without its escapes. */
export function wordsIn({ messages }: ModelRequest): string {
  return JSON.stringify(messages)
}

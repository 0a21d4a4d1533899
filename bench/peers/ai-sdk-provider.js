/** The AI SDK's provider alone: `doStream` read by a hand-written loop, on `node:http`. */
import { createServer } from 'node:http'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { listen } from '../listen.ts'

const model = createOpenAICompatible({ name: 'up', baseURL: process.argv[2], includeUsage: true })('bench')

async function forward(body, response) {
  const left = new AbortController()
  response.on('close', () => left.abort())
  const prompt = JSON.parse(body).messages.map(({ content }) => ({
    role: 'user',
    content: [{ type: 'text', text: content }],
  }))
  const { stream } = await model.doStream({ prompt, abortSignal: left.signal })
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    if (value.type === 'text-delta') {
      response.write(`data: ${JSON.stringify({ type: 'text-delta', delta: value.delta })}\n\n`)
    }
  }
  response.end('data: [DONE]\n\n')
}

listen(
  createServer((incoming, response) => {
    let body = ''
    incoming.setEncoding('utf8').on('data', (piece) => (body += piece))
    incoming.on('end', () => forward(body, response).catch(() => response.destroy()))
  }),
)

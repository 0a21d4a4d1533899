/**
 * The floor: the minimum that any Node server must do. It parses the model's frames and writes new ones, with one write per
 * read; without usage, error handling or recording.
 */
import { createServer, request, type ServerResponse } from 'node:http'
import { listen } from './listen.ts'

const upstream = new URL(`${process.argv[2]}/chat/completions`)

function forward(body: string, response: ServerResponse): void {
  const { messages } = JSON.parse(body) as { messages: unknown }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const asked = request(upstream, { method: 'POST', headers: { 'content-type': 'application/json' } }, (answer) => {
    let rest = ''
    let out = ''
    const flush = () => {
      response.write(out)
      out = ''
    }
    answer.setEncoding('utf8').on('data', (piece: string) => {
      const lines = (rest + piece).split('\n\n')
      rest = lines.pop()!
      const before = out
      for (const line of lines) {
        if (line === 'data: [DONE]') continue
        const { choices } = JSON.parse(line.slice(6)) as { choices: { delta: { content?: string } }[] }
        const text = choices[0]?.delta.content
        if (text) out += `data: ${JSON.stringify({ type: 'text-delta', delta: text })}\n\n`
      }
      // All chunks of one read arrive in the same tick.
      if (before === '' && out !== '') process.nextTick(flush)
    })
    answer.on('end', () => process.nextTick(() => response.end('data: [DONE]\n\n')))
    answer.on('error', () => response.destroy())
  })
  asked.on('error', () => response.destroy())
  response.on('close', () => asked.destroy())
  const stream_options = { include_usage: true }
  asked.end(JSON.stringify({ model: 'bench', messages, stream: true, stream_options }))
}

listen(
  createServer((incoming, response) => {
    let body = ''
    incoming.setEncoding('utf8').on('data', (piece: string) => (body += piece))
    incoming.on('end', () => forward(body, response))
  }),
)

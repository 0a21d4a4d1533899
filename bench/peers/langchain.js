/** LangChain's `ChatOpenAI` behind Express: `model.stream`, a frame per chunk. */
import { ChatOpenAI } from '@langchain/openai'
import express from 'express'
import { ready } from '../listen.ts'

const model = new ChatOpenAI({ model: 'bench', apiKey: 'none', configuration: { baseURL: process.argv[2] } })
const app = express()
app.use(express.json())
app.post('/chat', async (request, response) => {
  const left = new AbortController()
  response.on('close', () => left.abort())
  try {
    const stream = await model.stream(request.body.messages, { signal: left.signal })
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for await (const chunk of stream) {
      if (chunk.text !== '') response.write(`data: ${JSON.stringify({ type: 'text-delta', delta: chunk.text })}\n\n`)
    }
    response.end('data: [DONE]\n\n')
  } catch {
    response.destroy()
  }
})
const server = app.listen(0, '127.0.0.1', () => ready(server.address().port))

/** AI SDK 7 as in its documentation: `streamText` → `toUIMessageStreamResponse`, behind Hono. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { serve } from '@hono/node-server'
import { convertToModelMessages, streamText } from 'ai'
import { Hono } from 'hono'
import { ready } from '../listen.ts'

const provider = createOpenAICompatible({ name: 'up', baseURL: process.argv[2], includeUsage: true })
const app = new Hono()
app.post('/api/chat', async (c) => {
  const { messages } = await c.req.json()
  const result = streamText({
    model: provider('bench'),
    messages: await convertToModelMessages(messages),
    abortSignal: c.req.raw.signal,
  })
  return result.toUIMessageStreamResponse()
})
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => ready(port))

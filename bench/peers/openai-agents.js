/** OpenAI Agents with its chat-completions model; its text stream behind Hono. */
import { serve } from '@hono/node-server'
import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled } from '@openai/agents'
import { Hono } from 'hono'
import OpenAI from 'openai'
import { ready } from '../listen.ts'

setDefaultOpenAIClient(new OpenAI({ apiKey: 'none', baseURL: process.argv[2] }))
setOpenAIAPI('chat_completions')
// Otherwise it uploads traces to OpenAI.
setTracingDisabled(true)
const agent = new Agent({ name: 'bench', instructions: 'Answer.', model: 'bench' })
const app = new Hono()
app.post('/chat', async (c) => {
  const { messages } = await c.req.json()
  const result = await run(agent, messages, { stream: true, signal: c.req.raw.signal })
  // A run that its client left rejects: nobody waits for it.
  result.completed.catch(() => undefined)
  return new Response(result.toTextStream().pipeThrough(new TextEncoderStream()), {
    headers: { 'content-type': 'text/plain; charset=utf-8' },
  })
})
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => ready(port))

/** A run whose tools have run must not be repeated by a client on its own. With the clients as they come: each repeats other statuses. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { HumanMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { generateText, streamText } from 'ai'
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { messages } from '../support/openai.ts'
import { agent } from '../support/engine.ts'
import { startServer } from '../support/server.ts'
import { startUpstream } from '../support/upstream.ts'

const clients: Record<string, (baseURL: string) => Promise<unknown>> = {
  openai: (baseURL) => new OpenAI({ baseURL, apiKey: 'none' }).chat.completions.create({ model: 'a', messages }),
  LangChain: (baseURL) =>
    new ChatOpenAI({ model: 'a', apiKey: 'none', configuration: { baseURL } }).invoke([new HumanMessage('Hi')]),
  'the AI SDK': (baseURL) => generateText({ model: createOpenAICompatible({ name: 'm', baseURL })('a'), messages }),
  'the AI SDK, streamed': async (baseURL) => {
    let failure: unknown
    const onError = ({ error }: { error: unknown }) => void (failure = error)
    const model = createOpenAICompatible({ name: 'm', baseURL })('a')
    await streamText({ model, messages, onError }).consumeStream()
    throw failure
  },
}

describe('OpenAI: retries', () => {
  test.each(
    Object.entries(clients).flatMap(([name, ask]) => [400, 429, 503].map((status) => [name, status, ask] as const)),
  )('%s: the tool runs once when the model fails behind it (%i)', async (_, status, ask) => {
    const upstream = await startUpstream((reply) => {
      if (reply.body.messages.some(({ role }) => role === 'tool'))
        return reply.refuse(status, { error: { message: 'out of luck' } }, { 'retry-after': '60' })
      reply.call('call_1', 'charge', { sum: 5 })
      return reply.finish('tool_calls')
    })
    onTestFinished(() => upstream.close())
    let charged = 0
    const charge = { description: 'Charges.', parameters: z.object({ sum: z.number() }), execute: () => ++charged }
    const server = await startServer({
      agents: { a: agent('tools: [charge]').replace('script:m', 'local:m') },
      tools: { charge },
      models: { endpoints: [{ name: 'local', baseURL: upstream.baseURL }] },
    })
    onTestFinished(() => server.close())
    await expect(ask(`${server.url}/v1`)).rejects.toThrow(/out of luck/u)
    expect([charged, (await server.store.runs.list()).length]).toEqual([1, 1])
  })
})

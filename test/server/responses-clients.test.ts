/** `/v1/responses` with the clients that people use: the AI SDK and LangChain. The `openai` package is in the other files, Codex in `test/clis`. */
import { createOpenAI } from '@ai-sdk/openai'
import { HumanMessage } from '@langchain/core/messages'
import { tool as langchainTool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai'
import { afterEach, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { finish, reasoning, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

/** Thinks, calls a tool of the server, then one of the client, then answers. */
const agentic = () =>
  createTold((prompt) => {
    const results = resultsIn(prompt)
    if (!results.has('call_s')) return [reasoning('Hm'), toolCall('call_s', 'multiply'), finish('tool-calls')]
    if (!results.has('call_c'))
      return [text('I look.'), toolCall('call_c', 'get_weather', { city: 'Rome' }), finish('tool-calls')]
    return [text('It is 84 and sunny.'), finish()]
  })

async function start(model: Told) {
  let ran = 0
  const multiply = { description: 'Multiplies.', parameters: z.object({}), execute: () => (ran++, 84) }
  server = await startServer({ agents: { a: agent('tools: [multiply]') }, tools: { multiply }, scripts: { m: model } })
  return { url: `${server.url}/v1`, server, ran: () => ran }
}

const weather = () => {
  const asked: unknown[] = []
  const tools = {
    get_weather: tool({
      description: 'Weather',
      inputSchema: jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
      execute: (input) => {
        asked.push(input)
        return 'Sunny'
      },
    }),
  }
  return { tools, asked }
}

describe('@ai-sdk/openai', () => {
  test.each([true, false])('a tool loop, streamed: %s', async (isStreamed) => {
    const model = agentic()
    const { url, server, ran } = await start(model)
    const { tools, asked } = weather()
    const options = {
      model: createOpenAI({ baseURL: url, apiKey: 'none' }).responses('a'),
      prompt: 'Go',
      tools,
      stopWhen: stepCountIs(3),
    }
    const result = isStreamed ? streamText(options) : await generateText(options)
    expect(await result.text).toBe('It is 84 and sunny.')
    expect(await result.finishReason).toBe('stop')
    expect(asked).toEqual([{ city: 'Rome' }])
    expect(ran()).toBe(1)
    const [first] = await result.steps
    expect(first!.reasoningText).toBe('Hm')
    expect(first!.toolCalls.map(({ toolName }) => toolName)).toContain('get_weather')
    expect(model.calls).toHaveLength(3)
    // The second request continues the first run, and the model is told of the server's tool, which the client has not kept.
    const [later] = await server.store.runs.list({ limit: 1 })
    expect(JSON.stringify(model.prompts.at(-1))).toContain('call_s')
    for await (const [entry] of server.store.log.read(later!.id, { limit: 1 })) {
      if (entry?.type === 'run-start') expect(entry.previousRunId).toBeDefined()
    }
  })

  test('structured output, and usage', async () => {
    const { url } = await start(createTold(() => [text('{"answer":"42"}'), finish('stop', { in: 12, out: 5 })]))
    const { output, usage } = await generateText({
      model: createOpenAI({ baseURL: url, apiKey: 'none' }).responses('a'),
      prompt: 'What?',
      output: Output.object({ schema: z.object({ answer: z.string() }) }),
    })
    expect(output).toEqual({ answer: '42' })
    expect([usage.inputTokens, usage.outputTokens]).toEqual([12, 5])
  })
})

describe('@ai-sdk/openai, streamed', () => {
  test('structured output', async () => {
    const { url } = await start(createTold(() => [text('{"answer"', ':"42"}'), finish('stop', { in: 12, out: 5 })]))
    const { output } = streamText({
      model: createOpenAI({ baseURL: url, apiKey: 'none' }).responses('a'),
      prompt: 'What?',
      output: Output.object({ schema: z.object({ answer: z.string() }) }),
    })
    expect(await output).toEqual({ answer: '42' })
  })
})

describe('@langchain/openai with useResponsesApi', () => {
  const chat = (url: string) =>
    new ChatOpenAI({
      model: 'a',
      apiKey: 'none',
      useResponsesApi: true,
      configuration: { baseURL: url },
      maxRetries: 0,
    })

  test('text, streamed and whole', async () => {
    const { url } = await start(createTold(() => [text('Hel', 'lo'), finish()]))
    expect((await chat(url).invoke('Hi')).text).toBe('Hello')
    let said = ''
    for await (const chunk of await chat(url).stream('Hi')) said += chunk.text
    expect(said).toBe('Hello')
  })

  test('thoughts, a tool of the server, and structured output', async () => {
    const { url, ran } = await start(
      createTold((prompt) =>
        resultsIn(prompt).has('call_s')
          ? [text('{"answer"', ':"84"}'), finish()]
          : [reasoning('Hm'), toolCall('call_s', 'multiply'), finish('tool-calls')],
      ),
    )
    const shape = z.object({ answer: z.string() })
    const whole = await chat(url).withStructuredOutput(shape, { method: 'jsonSchema', name: 'answer' }).invoke('What?')
    expect(whole).toEqual({ answer: '84' })
    const message = await chat(url).invoke('What?')
    expect(JSON.stringify([message.content, message.additional_kwargs, message.response_metadata])).toContain('Hm')
    expect(message.tool_calls).toEqual([])
    let said = ''
    for await (const chunk of await chat(url).stream('What?')) said += chunk.text
    expect(said).toBe('{"answer":"84"}')
    expect(ran()).toBe(3)
  })

  test('a tool of the client', async () => {
    const { url } = await start(agentic())
    const schema = z.object({ city: z.string() })
    const look = langchainTool(() => 'Sunny', { name: 'get_weather', description: 'Weather', schema })
    const bound = chat(url).bindTools([look])
    const question = new HumanMessage('Go')
    const first = await bound.invoke([question])
    expect(first.tool_calls).toMatchObject([{ name: 'get_weather', args: { city: 'Rome' }, id: 'call_c' }])
    const result = await look.invoke(first.tool_calls![0]! as never)
    const second = await bound.invoke([question, first, result as never])
    expect(second.text).toBe('It is 84 and sunny.')
  })
})

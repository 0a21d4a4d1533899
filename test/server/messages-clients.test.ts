/** `/v1/messages` with the AI SDK. `@anthropic-ai/sdk` is in the other files, LangChain and Claude Code in `test/clis`. */
import { createAnthropic } from '@ai-sdk/anthropic'
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

async function start(model: Told) {
  let ran = 0
  const multiply = { description: 'Multiplies.', parameters: z.object({}), execute: () => (ran++, 84) }
  server = await startServer({ agents: { a: agent('tools: [multiply]') }, tools: { multiply }, scripts: { m: model } })
  const anthropic = createAnthropic({ baseURL: `${server.url}/v1`, apiKey: 'none' })
  return { model: anthropic('a'), server, ran: () => ran }
}

describe('@ai-sdk/anthropic', () => {
  test.each([true, false])('a tool loop beside the server’s tool, streamed: %s', async (isStreamed) => {
    const told = createTold((prompt) => {
      const results = resultsIn(prompt)
      if (!results.has('call_s')) return [reasoning('Hm'), toolCall('call_s', 'multiply'), finish('tool-calls')]
      if (!results.has('call_c'))
        return [text('I look.'), toolCall('call_c', 'get_weather', { city: 'Rome' }), finish('tool-calls')]
      return [text('It is 84 and sunny.'), finish()]
    })
    const { model, server: running, ran } = await start(told)
    const asked: unknown[] = []
    const weather = tool({
      description: 'Weather',
      inputSchema: jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
      execute: (input) => (asked.push(input), 'Sunny'),
    })
    const options = { model, prompt: 'Go', tools: { get_weather: weather }, stopWhen: stepCountIs(3) }
    const result = isStreamed ? streamText(options) : await generateText(options)
    expect(await result.text).toBe('It is 84 and sunny.')
    expect(await result.finishReason).toBe('stop')
    expect(asked).toEqual([{ city: 'Rome' }])
    expect(ran()).toBe(1)
    const [first] = await result.steps
    expect(first!.reasoningText).toBe('Hm')
    expect(first!.toolCalls.map(({ toolName }) => toolName)).toEqual(['multiply', 'get_weather'])
    expect(told.calls).toHaveLength(3)
    // The second request goes on with the first run.
    const [later] = await running.store.runs.list({ limit: 1 })
    for await (const [entry] of running.store.log.read(later!.id, { limit: 1 })) {
      if (entry?.type === 'run-start') expect(entry.previousRunId).toBeDefined()
    }
  })

  test.each([true, false])('structured output, and usage; streamed: %s', async (isStreamed) => {
    const { model } = await start(createTold(() => [text('{"answer":"42"}'), finish('stop', { in: 12, out: 5 })]))
    const output = Output.object({ schema: z.object({ answer: z.string() }) })
    const options = {
      model,
      prompt: 'What?',
      output,
      providerOptions: { anthropic: { structuredOutputMode: 'outputFormat' } },
    }
    const result = isStreamed ? streamText(options) : await generateText(options)
    expect(await result.output).toEqual({ answer: '42' })
    const usage = await result.usage
    expect([usage.inputTokens, usage.outputTokens]).toEqual([12, 5])
  })
})

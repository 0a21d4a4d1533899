/**
 * Clients of `/v1/responses` from npm that the package does not depend on: OpenAI's Agents SDK and the AI SDK's provider for OpenResponses. Each answers,
 * runs its tools, shows thoughts and the server's tools, and takes JSON that fits a schema; streamed, and as one JSON.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import type * as AiSdk from 'ai'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import {
  errorPart,
  finish,
  reasoning,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { installed, type Installed } from '../support/from-npm.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { startServer, type TestServer } from '../support/server.ts'

const needs = 'needs the npm registry'
let npm: Installed | undefined
beforeAll(async () => {
  npm = await installed([
    '@openai/agents@0.20.0',
    '@ai-sdk/open-responses@2.0.36',
    'openai@7.57.0',
    'ai@7.0.173',
    'zod@4',
  ])
}, 400_000)
afterAll(() => npm?.remove(), 60_000)

const load = <T>(name: string) => createRequire(join(npm!.root, 'package.json'))(name) as T

type Prompt = Told['prompts'][number]

/** Thinks, calls a tool of the server, then one of the client, then answers. */
const agentic = (prompt: Prompt): ScriptStep[] => {
  const results = resultsIn(prompt)
  if (!results.has('call_s')) return [reasoning('Hm'), toolCall('call_s', 'multiply'), finish('tool-calls')]
  if (!results.has('call_c'))
    return [text('I look.'), toolCall('call_c', 'get_weather', { city: 'Rome' }), finish('tool-calls')]
  return [text('It is 84 ', 'and sunny.'), finish('stop', { in: 12, out: 5 })]
}

async function start(answer: (prompt: Prompt) => ScriptStep[], config = 'tools: [multiply]') {
  let ran = 0
  const multiply = { description: 'Multiplies.', parameters: z.object({}), execute: () => (ran++, 84) }
  const model = createTold(answer)
  const server = await startServer({ agents: { a: agent(config) }, tools: { multiply }, scripts: { m: model } })
  onTestFinished(() => server.close())
  return { server, model, ran: () => ran }
}

const parameters = {
  type: 'object' as const,
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false as const,
}
const schema = {
  type: 'object' as const,
  properties: { answer: { type: 'string' } },
  required: ['answer'],
  additionalProperties: false as const,
}

const runsOf = async ({ store }: TestServer) => (await store.runs.list({ limit: 100 })).toReversed()

/* The parts of the packages that are used. */

interface Interruption {
  name: string
  arguments?: string
}
interface AgentsState {
  approve(item: Interruption): void
  reject(item: Interruption, options?: { message: string }): void
}
interface AgentsResult extends AsyncIterable<{ type: string; data?: { type: string; delta?: string } }> {
  finalOutput: unknown
  interruptions: Interruption[]
  state: AgentsState
  newItems: { type: string; rawItem: { type: string; name?: string } }[]
  completed: Promise<void>
}
interface Agents {
  Agent: new (options: object) => object
  run(agent: object, input: unknown, options?: object): Promise<AgentsResult>
  tool(options: object): object
  hostedMcpTool(options: object): object
  setDefaultOpenAIClient(client: object): void
  setTracingDisabled(is: boolean): void
  OpenAIResponsesModel: new (client: object, model: string) => object
}

/** The SDK's agent, whose model is ours. */
function agents(url: string) {
  const sdk = load<Agents>('@openai/agents')
  const { OpenAI } = load<{ OpenAI: new (options: object) => object }>('openai')
  sdk.setTracingDisabled(true)
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 })
  const asked: unknown[] = []
  const weather = sdk.tool({
    name: 'get_weather',
    description: 'Weather',
    parameters,
    strict: true,
    execute: (input: unknown) => (asked.push(input), 'Sunny'),
  })
  const make = (options: object) =>
    new sdk.Agent({
      name: 'ours',
      instructions: 'Be brief.',
      model: new sdk.OpenAIResponsesModel(client, 'a'),
      ...options,
    })
  return { sdk, weather, asked, make }
}

describe('@openai/agents', { timeout: 120_000 }, () => {
  test.for([true, false])(
    'a tool loop with thoughts and a tool of the server, streamed: %s',
    async (stream, { skip }) => {
      skip(npm === undefined, needs)
      const { server, model, ran } = await start(agentic)
      const { sdk, weather, asked, make } = agents(server.url)
      const result = await sdk.run(make({ tools: [weather] }), 'Go', { stream })
      let said = ''
      if (stream) {
        for await (const { type, data } of result)
          if (type === 'raw_model_stream_event' && data?.type === 'output_text_delta') said += data.delta
        await result.completed
        expect(said).toBe('I look.It is 84 and sunny.')
      }
      expect(result.finalOutput).toBe('It is 84 and sunny.')
      expect(asked).toEqual([{ city: 'Rome' }])
      expect(ran()).toBe(1)
      expect(model.calls).toHaveLength(3)
      const types = result.newItems.map(({ type }) => type)
      expect(types).toContain('reasoning_item')
      // The server's call, and the client's own.
      expect(types.filter((type) => type === 'tool_call_item')).toHaveLength(2)
      expect(await runsOf(server)).toHaveLength(2)
    },
  )

  test.for([true, false])('structured output, streamed: %s', async (stream, { skip }) => {
    skip(npm === undefined, needs)
    const { server } = await start(() => [text('{"answer"', ':"42"}'), finish()])
    const { sdk, make } = agents(server.url)
    const outputType = { type: 'json_schema', name: 'answer', strict: true, schema }
    const result = await sdk.run(make({ outputType }), 'What?', { stream })
    if (stream) await result.completed
    expect(result.finalOutput).toEqual({ answer: '42' })
  })

  test('a conversation goes on from the response before', async ({ skip }) => {
    skip(npm === undefined, needs)
    const { server, model } = await start((prompt) => [text(`${prompt.length} messages`), finish()])
    const { sdk, make } = agents(server.url)
    const first = (await sdk.run(make({}), 'One')) as AgentsResult & { lastResponseId: string }
    const second = await sdk.run(make({}), 'Two', { previousResponseId: first.lastResponseId })
    expect(second.finalOutput).toBe('4 messages')
    expect(JSON.stringify(model.prompts.at(-1))).toContain('One')
  })

  test('a run that fails throws with its reason, and runs once', async ({ skip }) => {
    skip(npm === undefined, needs)
    const { server, ran } = await start((prompt) =>
      resultsIn(prompt).has('call_s')
        ? [errorPart({ message: 'The provider broke.' })]
        : [toolCall('call_s', 'multiply'), finish('tool-calls')],
    )
    const { sdk, make } = agents(server.url)
    const stream = await sdk.run(make({}), 'Go', { stream: true })
    await expect(stream.completed).rejects.toThrow()
    await expect(sdk.run(make({}), 'Go')).rejects.toThrow(/The provider broke\./u)
    expect(ran()).toBe(2)
    expect(await runsOf(server)).toHaveLength(2)
  })

  describe('approvals', () => {
    const paying = (prompt: Prompt): ScriptStep[] =>
      resultsIn(prompt).size === 0
        ? [toolCall('call_s', 'multiply'), finish('tool-calls')]
        : [text(`Done: ${JSON.stringify([...resultsIn(prompt).values()])}`), finish()]
    const needing = 'tools: [{ name: multiply, approval: true }]'
    const hosted = { serverLabel: 'a', serverUrl: 'http://127.0.0.1:9/unused', requireApproval: 'always' }

    test.for([true, false])('the SDK asks its user, and the call runs once; streamed: %s', async (stream, { skip }) => {
      skip(npm === undefined, needs)
      const { server, ran } = await start(paying, needing)
      const { sdk, make } = agents(server.url)
      const ours = make({ tools: [sdk.hostedMcpTool(hosted)] })
      const first = await sdk.run(ours, 'Go', { stream })
      if (stream) await first.completed
      expect(first.interruptions.map(({ name }) => name)).toEqual(['multiply'])
      expect(ran()).toBe(0)
      first.state.approve(first.interruptions[0]!)
      const rest = await sdk.run(ours, first.state, { stream })
      if (stream) await rest.completed
      expect(rest.interruptions).toEqual([])
      expect(rest.finalOutput).toContain('84')
      expect(ran()).toBe(1)
      expect(await runsOf(server)).toHaveLength(1)
    })

    test('a callback denies, with a reason for the model', async ({ skip }) => {
      skip(npm === undefined, needs)
      const { server, ran } = await start(paying, needing)
      const { sdk, make } = agents(server.url)
      const onApproval = async () => ({ approve: false, reason: 'Not today.' })
      const result = await sdk.run(make({ tools: [sdk.hostedMcpTool({ ...hosted, onApproval })] }), 'Go')
      expect(result.finalOutput).toContain('Not today.')
      expect(ran()).toBe(0)
    })

    test('without the agent among its tools it gets words, and does not throw', async ({ skip }) => {
      skip(npm === undefined, needs)
      const { server } = await start(paying, needing)
      const { sdk, make } = agents(server.url)
      const { finalOutput } = await sdk.run(make({}), 'Go')
      expect(finalOutput).toContain('waits for approval')
    })
  })
})

describe('@ai-sdk/open-responses', { timeout: 120_000 }, () => {
  function provider(url: string) {
    const sdk = load<typeof AiSdk>('ai')
    const { createOpenResponses } = load<{
      createOpenResponses(options: object): (model: string) => LanguageModelV4
    }>('@ai-sdk/open-responses')
    const model = createOpenResponses({ name: 'ours', url: `${url}/v1/responses` })('a')
    const asked: unknown[] = []
    const get_weather = sdk.tool({
      description: 'Weather',
      inputSchema: sdk.jsonSchema<{ city: string }>(parameters),
      execute: (input) => (asked.push(input), 'Sunny'),
    })
    return { sdk, model, asked, tools: { get_weather } }
  }

  test.for([true, false])(
    'a tool loop with thoughts and a tool of the server, streamed: %s',
    async (stream, { skip }) => {
      skip(npm === undefined, needs)
      const { server, model: ours, ran } = await start(agentic)
      const { sdk, model, asked, tools } = provider(server.url)
      const options = { model, prompt: 'Go', tools, stopWhen: sdk.stepCountIs(3) }
      const result = stream ? sdk.streamText(options) : await sdk.generateText(options)
      expect(await result.text).toBe('It is 84 and sunny.')
      expect(await result.finishReason).toBe('stop')
      expect(asked).toEqual([{ city: 'Rome' }])
      expect(ran()).toBe(1)
      expect(ours.calls).toHaveLength(3)
      const [first] = await result.steps
      expect(first!.reasoningText).toBe('Hm')
      expect((await result.totalUsage).outputTokens).toBe(15)
      expect(await runsOf(server)).toHaveLength(2)
    },
  )

  test.for([true, false])('structured output, streamed: %s', async (stream, { skip }) => {
    skip(npm === undefined, needs)
    const { server } = await start(() => [text('{"answer"', ':"42"}'), finish()])
    const { sdk, model } = provider(server.url)
    const output = sdk.Output.object({ schema: sdk.jsonSchema<{ answer: string }>(schema) })
    const options = { model, prompt: 'What?', output }
    const result = stream ? sdk.streamText(options) : await sdk.generateText(options)
    expect(await result.output).toEqual({ answer: '42' })
  })

  test('a run that fails is an error, and runs once', async ({ skip }) => {
    skip(npm === undefined, needs)
    const { server, ran } = await start((prompt) =>
      resultsIn(prompt).has('call_s')
        ? [errorPart({ message: 'The provider broke.' })]
        : [toolCall('call_s', 'multiply'), finish('tool-calls')],
    )
    const { sdk, model } = provider(server.url)
    // It reads an error only if its `param` is a text, where the protocol has null; the reason is in the body.
    await expect(sdk.generateText({ model, prompt: 'Go' })).rejects.toMatchObject({
      responseBody: expect.stringContaining('The provider broke.'),
    })
    const errors: unknown[] = []
    const result = sdk.streamText({ model, prompt: 'Go', onError: ({ error }) => void errors.push(error) })
    await result.consumeStream()
    expect(await result.finishReason).toBe('error')
    expect(ran()).toBe(2)
    expect(await runsOf(server)).toHaveLength(2)
  })
})

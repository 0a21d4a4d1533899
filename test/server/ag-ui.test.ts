/** `POST /ag-ui/:agentId`, read by AG-UI's own client with its verifier: text, reasoning, tools, failures, a stop, a disconnect. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  errorPart,
  finish,
  latch,
  reasoning,
  text,
  throws,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { agent, until, type EngineOptions } from '../support/engine.ts'
import { createAgUiClient, only, textsOf } from '../support/ag-ui.ts'
import { startServer } from '../support/server.ts'

async function serving(script: ScriptStep[][], yaml = '', more: Partial<EngineOptions> = {}) {
  const model = createScriptedModel(script)
  const server = await startServer({ agents: { a: agent(yaml) }, scripts: { m: model }, ...more })
  onTestFinished(() => server.close())
  return { ...server, model }
}

const add = {
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }: { a: number; b: number }) => ({ sum: a + b }),
}
const locate = { name: 'locate', description: 'Where the user is', parameters: { type: 'object', properties: {} } }

describe('AG-UI route', () => {
  test('text: RUN_STARTED before the first token, each token before the next, one message with the run in its id', async () => {
    const gates = [latch(), latch()] as const
    const { url } = await serving([
      [
        gates[0],
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'one 😀' },
        gates[1],
        { type: 'text-delta', id: 't', delta: ' two' },
        { type: 'text-end', id: 't' },
        finish(),
      ],
    ])
    const client = createAgUiClient(url, { state: { page: 7 } })
    client.say('Hi')
    const { events, end, run } = await client.run({ runId: 'r1' }, (event) => {
      if (event.type === 'RUN_STARTED') gates[0].open()
      if (event.type === 'TEXT_MESSAGE_CONTENT') gates[1].open()
    })
    expect(events[0]).toMatchObject({ threadId: client.threadId, runId: 'r1', metadata: { millrace: { runId: run } } })
    expect(only(events, 'TEXT_MESSAGE_CONTENT').map(({ delta }) => delta)).toEqual(['one 😀', ' two'])
    expect(only(events, 'STATE_SNAPSHOT')).toMatchObject([{ snapshot: { page: 7 } }])
    expect(end).toMatchObject({
      outcome: { type: 'success' },
      result: 'one 😀 two',
      usage: [{ inputTokens: 10, outputTokens: 5 }],
    })
    expect(client.agent.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', id: `${run}:1`, content: 'one 😀 two' },
    ])
  })

  test('reasoning', async () => {
    const { url } = await serving([[reasoning('Let me ', 'think.'), text('Done.'), finish()]])
    const client = createAgUiClient(url)
    client.say('Hi')
    const { types } = await client.run()
    expect(types.filter((type) => /REASONING/u.test(type))).toEqual([
      'REASONING_START',
      'REASONING_MESSAGE_START',
      'REASONING_MESSAGE_CONTENT',
      'REASONING_MESSAGE_CONTENT',
      'REASONING_MESSAGE_END',
      'REASONING_END',
    ])
    expect(client.agent.messages).toMatchObject([
      { role: 'user' },
      { role: 'reasoning', content: 'Let me think.' },
      { role: 'assistant', content: 'Done.' },
    ])
  })

  test('what the pipeline is told: messages, state, context, forwardedProps; never mcpHeaders', async () => {
    const { url, model, store } = await serving(
      [[text('ok'), finish()]],
      'system: "$input.state.page | $input.context.0.value | $input.forwardedProps.tone"',
      { mcpServers: { crm: { url: 'http://127.0.0.1:9' } } },
    )
    const client = createAgUiClient(url, { state: { page: 'home' } })
    client.say('Hi')
    const mcpHeaders = { crm: { authorization: 'Bearer very-secret-token' } }
    const { run } = await client.run({
      context: [{ description: 'time', value: 'noon' }],
      forwardedProps: { tone: 'kind', mcpHeaders },
    })
    expect(model.calls[0]!.options.prompt.slice(0, 1)).toMatchObject([{ role: 'system' }])
    expect(JSON.stringify(model.calls[0]!.options.prompt[0])).toMatch(/home/u)
    const stored: unknown[] = []
    for await (const batch of store.log.read(run)) stored.push(...batch)
    expect(JSON.stringify(stored)).not.toContain('very-secret-token')
    expect(stored[0]).toMatchObject({
      protocol: 'ag-ui',
      labels: { runId: expect.any(String) },
      input: { context: [{ value: 'noon' }] },
    })
    expect((stored[0] as { input: object }).input).toHaveProperty('forwardedProps', { tone: 'kind' })
  })

  test('a tool of the server: the call, its result, and the answer', async () => {
    const { url } = await serving(
      [
        [text('Let me see. '), toolCall('c1', 'add', { a: 1, b: 2 }), finish('tool-calls')],
        [text('It is 3.'), finish()],
      ],
      'tools: [add]',
      { tools: { add } },
    )
    const client = createAgUiClient(url)
    client.say('1+2?')
    const { events } = await client.run()
    expect(only(events, 'TOOL_CALL_RESULT')).toMatchObject([{ toolCallId: 'c1', content: '{"sum":3}' }])
    expect(client.agent.messages).toMatchObject([
      { role: 'user' },
      {
        role: 'assistant',
        content: 'Let me see. ',
        toolCalls: [{ id: 'c1', function: { name: 'add', arguments: '{"a":1,"b":2}' } }],
      },
      { role: 'tool', toolCallId: 'c1' },
      { role: 'assistant', content: 'It is 3.' },
    ])
  })

  test('a tool of the client, beside one of the server: results only for the server’s, the others pending in order; then one run goes on', async () => {
    const { url, store, model } = await serving(
      [
        [
          toolCall('c1', 'locate'),
          toolCall('c2', 'add', { a: 1, b: 2 }),
          toolCall('c3', 'locate'),
          finish('tool-calls'),
        ],
        [text('You are in Rome.'), finish()],
      ],
      'tools: [add]',
      { tools: { add } },
    )
    const client = createAgUiClient(url, { tools: [locate] })
    client.say('Where am I?')
    const first = await client.run({ runId: 'r1' })
    expect(only(first.events, 'TOOL_CALL_RESULT').map(({ toolCallId }) => toolCallId)).toEqual(['c2'])
    expect(first.end).toMatchObject({
      type: 'RUN_FINISHED',
      outcome: { type: 'success', pendingToolCallIds: ['c1', 'c3'] },
    })
    // All calls of a model call are one message.
    expect(new Set(only(first.events, 'TOOL_CALL_START').map(({ parentMessageId }) => parentMessageId)).size).toBe(1)

    client.answer('c1', '{"city":"Rome"}')
    client.answer('c3', '', 'no GPS')
    const second = await client.run({ runId: 'r2' })
    expect(second.run).toBe(first.run)
    expect(second.events[0]).toMatchObject({ runId: 'r2' })
    // The client has these results.
    expect(only(second.events, 'TOOL_CALL_RESULT')).toEqual([])
    expect(only(second.events, 'TOOL_CALL_START')).toEqual([])
    expect(second.end).toMatchObject({ outcome: { type: 'success' }, result: 'You are in Rome.' })
    expect(second.end).not.toHaveProperty('outcome.pendingToolCallIds')
    expect(await store.runs.list({ threadId: client.threadId })).toHaveLength(1)
    const told = model.calls[1]!.options.prompt.at(-1)!
    expect(told).toMatchObject({
      role: 'tool',
      content: [
        { toolCallId: 'c1', output: { type: 'json', value: { city: 'Rome' } } },
        { toolCallId: 'c2', output: { type: 'json', value: { sum: 3 } } },
        { toolCallId: 'c3', output: { type: 'error-text', value: 'no GPS' } },
      ],
    })

    // The same request again reads the same part, and the model is not asked again.
    const again = await client.run({ runId: 'r2' })
    expect([again.run, again.end.type, model.calls.length]).toEqual([first.run, 'RUN_FINISHED', 2])
    expect(textsOf(client.agent.messages).at(-1)).toBe('You are in Rome.')
  })

  test('a call that the next request leaves without result gets a defined outcome', async () => {
    const { url, model } = await serving([
      [toolCall('c1', 'locate'), finish('tool-calls')],
      [text('Never mind.'), finish()],
    ])
    const client = createAgUiClient(url, { tools: [locate] })
    client.say('Where am I?')
    await client.run()
    client.say('Forget it')
    const { end } = await client.run()
    expect(end).toMatchObject({ outcome: { type: 'success' }, result: 'Never mind.' })
    const { prompt } = model.calls[1]!.options
    expect(prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
    expect(prompt[2]).toMatchObject({
      content: [{ toolCallId: 'c1', output: { type: 'error-text', value: expect.stringContaining('unavailable') } }],
    })
  })

  test('a refused key is a status, before any stream; a failure after the first token is RUN_ERROR', async () => {
    const { url } = await serving([
      [throws(Object.assign(new Error('bad key'), { statusCode: 401 }))],
      [text('Hal'), errorPart(new Error('broken'))],
    ])
    const client = createAgUiClient(url)
    client.say('Hi')
    await expect(client.run()).rejects.toMatchObject({ status: expect.any(Number) })
    const { end, types } = await client.run()
    expect(end).toMatchObject({ type: 'RUN_ERROR', message: expect.any(String), code: expect.any(String) })
    expect(types).toContain('TEXT_MESSAGE_CONTENT')
  })

  test('a stop: everything is closed, then RUN_FINISHED cancelled', async () => {
    const gate = latch()
    const { url, post } = await serving([[text('one'), toolCall('c1', 'f').slice(0, 1), gate, finish()]])
    const client = createAgUiClient(url)
    client.say('Hi')
    let stopped: Promise<Response> | undefined
    let started = ''
    const { end, run } = await client.run({}, (event) => {
      if (event.type === 'RUN_STARTED') started = (event.metadata!['millrace'] as { runId: string }).runId
      if (event.type === 'TEXT_MESSAGE_CONTENT') stopped = post(`/api/runs/${started}/stop`, {})
    })
    expect(started).toBe(run)
    expect((await stopped!).status).toBe(202)
    expect(end).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
  })

  test('a client that leaves cancels after its time, and the model is stopped', async () => {
    const gate = latch()
    const { url, store } = await serving([[text('one'), gate, finish()]], '', {
      agents: { a: agent('', 'onDisconnect: cancel') },
    })
    const client = createAgUiClient(url)
    client.leaves()
    client.say('Hi')
    const { run } = await client.run({}, (event) => {
      if (event.type === 'TEXT_MESSAGE_CONTENT') client.agent.abortRun()
    })
    expect(await until(store, run, ({ type }) => type === 'run-end')).toMatchObject({ outcome: 'aborted' })
  })

  test('an agent that takes no other keys takes what AG-UI clients always send', async () => {
    const strict = `input: { type: object, properties: { town: { type: string, default: Ghent } }, additionalProperties: false }
workflow:
  - { id: a, type: llm, config: { model: "script:m", stream: true, system: "$input.town $input.state.page", messages: "$input.messages" } }
`
    const model = createScriptedModel([[text('Hi.'), finish()]])
    const server = await startServer({ agents: { a: strict }, scripts: { m: model } })
    onTestFinished(() => server.close())
    const client = createAgUiClient(server.url, { state: { page: 7 } })
    client.say('Hi')
    const { end } = await client.run({ context: [{ description: 'd', value: 'v' }], forwardedProps: { x: 1 } })
    expect(end).toMatchObject({ type: 'RUN_FINISHED', result: 'Hi.' })
    expect(JSON.stringify(model.calls[0]!.options.prompt)).toContain('Ghent 7')
  })
})

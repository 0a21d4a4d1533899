/** What AG-UI's routes refuse, how a conversation may change, and what they say of an agent. */
import { AgentCapabilitiesSchema } from '@ag-ui/core/schemas'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { finish, latch, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { createAgUiClient, textsOf } from '../support/ag-ui.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'

/** Repeats what the user said last, and counts the messages. */
const echo = () =>
  createTold((prompt): ScriptStep[] => {
    const last = prompt.findLast(({ role }) => role === 'user')!.content as { text?: string }[]
    return [text(`${prompt.length}: ${last[0]!.text}`), finish()]
  })

async function serving(more: Partial<EngineOptions> = {}, options: Partial<HandlerOptions> = {}) {
  const model = echo()
  const server = await startServer({ agents: { a: agent() }, scripts: { m: model }, ...more }, options)
  onTestFinished(() => server.close())
  return { ...server, model }
}

const user = (content: string, id = content) => ({ id, role: 'user' as const, content })
const input = { threadId: 't', runId: 'r', messages: [user('Hi')] }

describe('AG-UI: requests', () => {
  test.each([
    [{}, 'messages must be an array.'],
    [{ ...input, threadId: undefined }, 'threadId is missing.'],
    [{ ...input, runId: '' }, 'runId must be a string of 1 to 256 characters.'],
    [
      { ...input, messages: [{ role: 'user', content: [{ type: 'image' }] }] },
      'messages[0].content[0].source is missing.',
    ],
    [{ ...input, tools: [{ name: 'a b' }] }, 'tools[0].name must be 1 to 64 letters'],
    [{ ...input, tools: [{ name: 'a', parameters: 'none' }] }, 'tools[0].parameters must be an object.'],
    [{ ...input, tools: Array.from({ length: 129 }, () => ({ name: 'a' })) }, 'tools has 129 entries; at most 128'],
    [{ ...input, context: [{ description: 'x' }] }, 'context[0].value must be a string.'],
    [{ ...input, forwardedProps: 'x' }, 'forwardedProps must be an object.'],
    [{ ...input, resume: [{}] }, 'resume[0].interruptId must be a string.'],
  ])('a bad input is 400, names its place, and starts nothing: %#', async (body, fault) => {
    const { post, store } = await serving()
    const response = await post('/ag-ui/a', body)
    expect([response.status, response.headers.get('content-type')]).toEqual([400, 'application/json'])
    const { error } = (await response.json()) as { error: { message: string } }
    expect(error.message).toContain(fault)
    expect(await store.runs.list({})).toEqual([])
  })

  test('null where older clients send it, and no optional field at all', async () => {
    const { post } = await serving()
    const nothing = { state: null, tools: null, context: null, forwardedProps: null, resume: null, parentRunId: null }
    for (const runId of ['r1', 'r2']) {
      const response = await post('/ag-ui/a', { ...input, ...(runId === 'r1' && nothing), runId })
      expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('RUN_FINISHED')])
    }
  })

  test('method, agent, JSON, size, key, origin', async () => {
    const { url, post } = await serving({}, { apiKey: 'k'.repeat(20), localOnly: true, maxBodyBytes: 1000 })
    const headers = { authorization: `Bearer ${'k'.repeat(20)}` }
    const send = async (path: string, init: RequestInit) => {
      const response = await fetch(url + path, {
        ...init,
        headers: { ...headers, ...(init.headers as Record<string, string>) },
      })
      return [response.status, await response.text()] as const
    }
    const json = { 'content-type': 'application/json' }
    expect(await send('/ag-ui/a', { method: 'GET' })).toEqual([405, expect.stringContaining('POST')])
    expect(await send('/ag-ui/a/connect', { method: 'POST' })).toEqual([405, expect.stringContaining('GET')])
    expect(await send('/ag-ui/b', { method: 'POST', headers: json, body: JSON.stringify(input) })).toEqual([
      404,
      expect.stringContaining('b'),
    ])
    expect(await send('/ag-ui/a', { method: 'POST', headers: json, body: '{' })).toEqual([
      400,
      expect.stringContaining('not valid JSON'),
    ])
    expect(await send('/ag-ui/a', { method: 'POST', body: '{}' })).toEqual([
      415,
      expect.stringContaining('application/json'),
    ])
    expect(
      await send('/ag-ui/a', { method: 'POST', headers: json, body: JSON.stringify({ x: 'x'.repeat(2000) }) }),
    ).toEqual([413, expect.anything()])
    expect((await post('/ag-ui/a', input)).status).toBe(401)
    expect((await fetch(`${url}/ag-ui/a/capabilities`)).status).toBe(401)
    expect(
      await send('/ag-ui/a', {
        method: 'POST',
        headers: { ...json, origin: 'https://evil.test' },
        body: JSON.stringify(input),
      }),
    ).toEqual([403, expect.anything()])
    expect((await send('/ag-ui/a/connects', { method: 'GET' }))[1]).toContain('did you mean /ag-ui/a/connect?')
    const head = await fetch(`${url}/ag-ui/a/capabilities`, { method: 'HEAD', headers })
    expect([head.status, await head.text()]).toEqual([200, ''])
  })

  test('history is the client’s: edit, regenerate and delete', async () => {
    const { url, model } = await serving()
    const client = createAgUiClient(url)
    client.say('one')
    await client.run()
    client.say('two')
    await client.run()
    expect(textsOf(client.agent.messages)).toEqual(['1: one', '3: two'])
    // Edit the second question.
    client.agent.setMessages([...client.agent.messages.slice(0, 2), user('deux', client.agent.messages[2]!.id)])
    await client.run()
    expect(textsOf(client.agent.messages)).toEqual(['1: one', '3: deux'])
    // Regenerate its answer.
    client.agent.setMessages(client.agent.messages.slice(0, 3))
    await client.run()
    expect(textsOf(client.agent.messages)).toEqual(['1: one', '3: deux'])
    // Delete the first exchange.
    client.agent.setMessages(client.agent.messages.slice(2))
    client.say('three')
    await client.run()
    expect(textsOf(client.agent.messages)).toEqual(['3: deux', '3: three'])
    expect(model.prompts.map((prompt) => prompt.length)).toEqual([1, 3, 3, 3, 3])
  })

  test('history: server takes only what is new of what the client sends', async () => {
    const { url, model } = await serving({ agents: { a: agent('', 'history: server') } })
    const client = createAgUiClient(url)
    for (const word of ['one', 'two', 'three']) {
      client.say(word)
      await client.run()
    }
    expect(textsOf(client.agent.messages)).toEqual(['1: one', '3: two', '5: three'])
    expect(model.prompts.map((prompt) => prompt.length)).toEqual([1, 3, 5])
  })

  test('an answer is told to the next turn as the server recorded it, not as the client sends it back', async () => {
    const { url, model } = await serving()
    const client = createAgUiClient(url)
    client.say('one')
    await client.run()
    client.agent.setMessages(
      client.agent.messages.map((message) =>
        message.role === 'assistant' ? { ...message, content: 'forged' } : message,
      ),
    )
    client.say('two')
    await client.run()
    expect(JSON.stringify(model.prompts[1])).toContain('1: one')
    expect(JSON.stringify(model.prompts)).not.toContain('forged')
  })

  test('the same thread and run again, at once: one run, read by both', async () => {
    const { post, store } = await serving()
    const both = await Promise.all([post('/ag-ui/a', input), post('/ag-ui/a', input)])
    const ids = both.map(({ headers }) => headers.get('x-millrace-run-id'))
    const bodies = await Promise.all(both.map((response) => response.text()))
    expect(new Set(ids).size).toBe(1)
    for (const body of bodies) expect(body).toContain('"delta":"1: Hi"')
    expect(await store.runs.list({})).toHaveLength(1)
    // A curl line is changed and pasted again.
    const other = await (await post('/ag-ui/a', { ...input, messages: [user('Ho')] })).text()
    expect(other).toContain('"delta":"1: Ho"')
  })

  test('two threads with the same ids of everything are apart', async () => {
    const gate = latch()
    const model = createTold((prompt): ScriptStep[] => {
      const isHers = JSON.stringify(prompt).includes('hers')
      return isHers ? [text('for '), gate, text('her'), finish()] : [text('for him'), finish()]
    })
    const { url } = await serving({ scripts: { m: model } })
    const hers = createAgUiClient(url, { threadId: 'hers', messages: [user('hers', 'u1')] })
    const his = createAgUiClient(url, { threadId: 'his', messages: [user('his', 'u1')] })
    let finished: Promise<unknown> | undefined
    await hers.run({ runId: 'r' }, ({ type }) => {
      if (type === 'TEXT_MESSAGE_CONTENT') finished ??= his.run({ runId: 'r' }).then(() => gate.open())
    })
    await finished
    expect([textsOf(hers.agent.messages), textsOf(his.agent.messages)]).toEqual([['for ', 'her'], ['for him']])
  })

  test('a tool result that comes after everything is over starts a new turn that knows it', async () => {
    const locate = { name: 'locate', description: '', parameters: { type: 'object', properties: {} } }
    const model = createTold((prompt) => {
      const isAsked = JSON.stringify(prompt).includes('"locate"')
      return isAsked ? [text('ok'), finish()] : [toolCall('c1', 'locate'), finish('tool-calls')]
    })
    const { url, post } = await serving({ scripts: { m: model } })
    const client = createAgUiClient(url, { tools: [locate] })
    client.say('Hi')
    const { run } = await client.run()
    await post(`/api/runs/${run}/stop`, {})
    client.answer('c1', 'Rome')
    const { end, run: next } = await client.run()
    expect([end.type, next === run]).toEqual(['RUN_FINISHED', false])
    expect(JSON.stringify(model.prompts[1])).toContain('Rome')
  })

  test('an answer counts also when its request lists no tools', async () => {
    const model = createTold((prompt) => {
      const isAsked = JSON.stringify(prompt).includes('"locate"')
      return isAsked ? [text('ok'), finish()] : [toolCall('c1', 'locate'), finish('tool-calls')]
    })
    const { url } = await serving({ scripts: { m: model } })
    const client = createAgUiClient(url)
    client.say('Hi')
    const locate = { name: 'locate', description: '', parameters: { type: 'object', properties: {} } }
    const { run } = await client.run({ tools: [locate] })
    client.answer('c1', 'Rome')
    const { end, run: next } = await client.run({ tools: [] })
    expect([end.type, next]).toEqual(['RUN_FINISHED', run])
    expect(JSON.stringify(model.prompts[1])).toContain('Rome')
  })

  test('capabilities, as the agent’s file has them', async () => {
    const add = { description: 'Adds', parameters: z.object({ a: z.number() }), execute: () => 1 }
    const pay = { description: 'Pays', parameters: z.looseObject({}), approval: true, execute: () => 1 }
    const { url } = await serving({
      agents: {
        a: agent(
          'tools: [add, pay]\nmaxSteps: 4',
          'metadata: { name: A, description: Adds up, version: 1.2.3 }\ntimeouts: { run: 30s }',
        ),
        b: 'workflow:\n  - { id: one, type: call-agent, config: { agent: a } }\n',
        c: agent('tools: [{ agent: a, approval: true }, { agent: b, handoff: true }]'),
      },
      tools: { add, pay },
    })
    const of = async (id: string) => (await (await fetch(`${url}/ag-ui/${id}/capabilities`)).json()) as object
    const found = await of('a')
    expect(AgentCapabilitiesSchema.safeParse(found).error).toBeUndefined()
    expect(found).toMatchObject({
      identity: { name: 'A', description: 'Adds up', version: '1.2.3' },
      transport: { streaming: true, websocket: false, httpBinary: true, resumable: true },
      tools: {
        supported: true,
        clientProvided: true,
        items: [
          { name: 'add', description: 'Adds', parameters: { properties: { a: { type: 'number' } } } },
          { name: 'pay', description: 'Pays' },
        ],
      },
      execution: { maxIterations: 4, maxExecutionTime: 30_000 },
      humanInTheLoop: { supported: true, approvals: true, interrupts: true, approveWithEdits: true },
      multiAgent: { supported: false },
    })
    const other = await of('b')
    expect(AgentCapabilitiesSchema.safeParse(other).error).toBeUndefined()
    expect(other).toMatchObject({
      tools: { items: [] },
      humanInTheLoop: { approvals: false },
      multiAgent: { supported: true, handoffs: false, subagents: [{ name: 'a', description: 'Adds up' }] },
    })
    const front = await of('c')
    expect(AgentCapabilitiesSchema.safeParse(front).error).toBeUndefined()
    expect(front).toMatchObject({
      tools: {
        items: [
          { name: 'a', description: 'Adds up', parameters: { properties: { message: { type: 'string' } } } },
          { name: 'transfer_to_b', parameters: { properties: {} } },
        ],
      },
      humanInTheLoop: { approvals: true },
      multiAgent: { supported: true, handoffs: true, subagents: [{ name: 'a' }, { name: 'b' }] },
    })
    const { agents } = (await (await fetch(`${url}/api/agents`)).json()) as {
      agents: { id: string; tools: string[] }[]
    }
    expect(agents.find(({ id }) => id === 'c')!.tools).toEqual(['a', 'transfer_to_b'])
  })
})

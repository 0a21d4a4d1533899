/** Clients that rename calls whose ids are not like OpenAI's, as Factory's Droid does: the conversation holds all the same. */
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, newFolder } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'

interface Said {
  role: string
  content?: unknown
  tool_calls?: { id: string }[]
  tool_call_id?: string
}

const asked: Said[] = [{ role: 'user', content: 'Count, then list the files.' }]
const tools = [{ type: 'function' as const, function: { name: 'ls', parameters: { type: 'object', properties: {} } } }]

const form = /^call_[0-9A-Za-z]{1,35}$/u

/** What Droid 0.215.0 sends back of a call: each other id has a name of its own in each request. */
function asDroid(messages: Said[]): Said[] {
  const names = new Map<string, string>()
  const rename = (id: string) => {
    if (id.startsWith('call_')) return id
    const name = names.get(id) ?? `call_${id.replace(/^toolu_/u, '').slice(0, 24)}_${names.size}`
    names.set(id, name)
    return name
  }
  return messages.map((message) => ({
    ...message,
    ...(message.tool_calls && { tool_calls: message.tool_calls.map((call) => ({ ...call, id: rename(call.id) })) }),
    ...(message.tool_call_id !== undefined && { tool_call_id: rename(message.tool_call_id) }),
  }))
}

async function start(id: string, top = '') {
  const dir = newFolder()
  let counted = 0
  const count = { description: 'Counts.', parameters: z.object({}), execute: () => ++counted }
  const model = createTold((prompt) => {
    const results = resultsIn(prompt)
    if (results.has(id)) return [text('Done.'), finish()]
    const own = toolCall(id, 'ls')
    if (top !== '') return [toolCall('toolu_01Own', 'count'), own, finish('tool-calls')]
    return [results.has('toolu_01Own') ? own : toolCall('toolu_01Own', 'count'), finish('tool-calls')]
  })
  const config = `tools: [${top === '' ? 'count' : '{ name: count, approval: true }'}]`
  const open = async () => {
    const server = await startServer({
      dir,
      agents: { a: agent(config, top) },
      tools: { count },
      scripts: { m: model },
    })
    onTestFinished(() => server.close())
    return server
  }
  return { open, model, counted: () => counted }
}

type Served = Awaited<ReturnType<Awaited<ReturnType<typeof start>>['open']>>

async function complete({ url, store }: Served, messages: Said[], stream = false) {
  const { completions } = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 }).chat
  const body = { model: 'a', messages: messages as OpenAI.ChatCompletionMessageParam[], tools }
  const answer = stream ? await completions.stream(body).finalChatCompletion() : await completions.create(body)
  const run = answer.id.slice('chatcmpl-'.length)
  const { millrace } = answer as { millrace?: { requests: { requestId: string; toolCallId: string }[] } }
  const { threadId: thread } = (await store.runs.get(run))!
  return { run, thread, message: answer.choices[0]!.message as Said, waits: millrace?.requests[0] }
}

const result = ({ message }: { message: Said }): Said[] => [
  message,
  { role: 'tool', tool_call_id: message.tool_calls![0]!.id, content: 'a.txt' },
]

const ids = [
  ['Anthropic', 'toolu_01T1x1fJ34qAmk2tNTrN7Up6'],
  ['Kimi', 'functions.ls:0'],
  ['vLLM', 'chatcmpl-tool-9f1b2c3d4e5f60718293a4b5c6d7e8f9'],
  ['OpenAI', 'call_kwQGU1mXGY3vwKPZZaSgVcDn'],
]
const cases = ids.flatMap(([of, id]) => [true, false].map((stream) => [of!, id!, stream] as const))

describe('OpenAI: call ids', () => {
  test.each(cases)('an id of %s, %s, streamed: %j', async (_, id, stream) => {
    const { open, model, counted } = await start(id)
    const first = await complete(await open(), asked, stream)
    expect(first.message.tool_calls!.map((call) => call.id)).toEqual([expect.stringMatching(form)])
    // Another process: it knows of the call what is in the store.
    const server = await open()
    const conversation = [...asked, ...result(first)]
    const second = await complete(server, asDroid(conversation), stream)
    expect(second).toMatchObject({ thread: first.thread, message: { content: 'Done.' } })
    const third = await complete(server, asDroid([...conversation, second.message, ...asked]), stream)
    expect(third.thread).toBe(first.thread)
    expect(counted()).toBe(1)
    for (const prompt of model.prompts.slice(-2)) expect([...resultsIn(prompt).keys()]).toEqual(['toolu_01Own', id])
  })

  test.each(ids)('of %s, a client that has the id as the model gave it: %s', async (_, id) => {
    const { open, model, counted } = await start(id)
    const server = await open()
    const first = await complete(server, asked)
    const raw = { ...first, message: { ...first.message, tool_calls: [{ ...first.message.tool_calls![0]!, id }] } }
    expect(await complete(server, [...asked, ...result(raw)])).toMatchObject({ thread: first.thread })
    expect([counted(), ...resultsIn(model.prompts.at(-1)!).keys()]).toEqual([1, 'toolu_01Own', id])
  })

  test('of a conversation that no run is known of, the model still gets its own ids', async () => {
    const id = 'toolu_01T1x1fJ34qAmk2tNTrN7Up6'
    const { open, model } = await start(id)
    const server = await open()
    const first = await complete(server, asked)
    await complete(server, [{ role: 'user', content: 'Edited.' }, ...asDroid(result(first))])
    expect([...resultsIn(model.prompts.at(-1)!).keys()]).toEqual([id])
  })

  test.each(['history: client', 'history: server'])(
    'beside an approval, %s: the result reaches its call',
    async (top) => {
      for (const [, id] of ids) {
        const { open, model, counted } = await start(id!, top)
        const server = await open()
        const first = await complete(server, asked)
        const { requestId, toolCallId } = first.waits!
        expect(toolCallId).toMatch(form)
        await server.post(`/api/runs/${first.run}/requests/${requestId}`, { approved: true })
        expect(await complete(server, asDroid([...asked, ...result(first)]))).toMatchObject({
          thread: first.thread,
        })
        expect(counted()).toBe(1)
        expect(Object.fromEntries(resultsIn(model.prompts.at(-1)!))).toEqual({
          toolu_01Own: { type: 'json', value: 1 },
          [id!]: { type: 'text', value: 'a.txt' },
        })
      }
    },
  )
})

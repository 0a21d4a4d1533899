/** What coding CLIs ask beside their answer, a title or a memory, in the same session: see docs/coding-clis.md. */
import { describe, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import {
  createScriptedModel,
  errorPart,
  finish,
  latch,
  text,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'

const tool = (name: string) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} } },
})
const main = { role: 'system', content: 'You are a coding agent.' }
const asked = { role: 'user', content: [{ type: 'text', text: 'What is 12*7?' }] }
const tools = [tool('run_shell_command')]

async function start(options: Partial<EngineOptions> = {}, config = '', top = '') {
  const server = await startServer({ agents: { a: agent(config, top) }, ...options })
  onTestFinished(() => server.close())
  return {
    ...server,
    async complete(messages: object[], more: object = {}, headers: Record<string, string> = {}) {
      const response = await server.post('/v1/chat/completions', { model: 'a', messages, tools, ...more }, { headers })
      const run = response.headers.get('x-millrace-run-id')!
      const body = (await response.json()) as { choices: [{ message: { content: string; tool_calls?: object[] } }] }
      expect([response.status, body]).toMatchObject([200, { choices: [{}] }])
      return { run, message: { role: 'assistant', ...body.choices[0].message } }
    },
    threadOf: async (run: string) => (await server.store.runs.get(run))!.threadId,
    statusOf: async (run: string) => (await server.store.runs.get(run))!.status,
  }
}

const approval = { config: 'tools: [{ name: calculator, approval: true }]\nmessages: $input.messages' }
/** Calls a tool that needs an approval, unless it is asked for something else. */
const cautious = () =>
  createTold((prompt) => {
    const said = JSON.stringify(prompt)
    if (said.includes('memory') || said.includes('And?')) return [text('ok'), finish()]
    const [result] = resultsIn(prompt).values()
    if (result !== undefined) return [text(`It is ${JSON.stringify(result)}`), finish()]
    return [toolCall('c1', 'calculator', { expression: '12*7' }), finish('tool-calls')]
  })

describe('coding CLIs on a server', () => {
  test.each([
    ['the client keeps the conversation', ''],
    ['the server keeps it', 'history: server'],
  ])('%s: a call with another system prompt, or other tools, leaves a run that waits', async (_, top) => {
    const { complete, statusOf, post } = await start({ scripts: { m: cautious() } }, approval.config, top)
    const { run, message } = await complete([main, asked])
    expect(await statusOf(run)).toBe('suspended')
    const conversation = [asked, message, { role: 'user', content: 'Write what a memory should have.' }]
    await complete([{ role: 'system', content: 'You extract a memory.' }, ...conversation])
    await complete([main, ...conversation], { tools: [tool('save')] })
    await complete([main, ...conversation], { tools: undefined })
    expect(await statusOf(run)).toBe('suspended')
    await post(`/api/runs/${run}/requests/${/waits for (\S+)\]/u.exec(message.content)![1]!}`, { approved: true })
    expect((await complete([main, asked, message])).message.content).toContain('84')
  })

  test('the same system prompt and tools are the conversation itself, which closes the call', async () => {
    const { complete, statusOf } = await start({ scripts: { m: cautious() } }, approval.config)
    const { run, message } = await complete([main, asked])
    await complete([main, asked, message, { role: 'user', content: 'And?' }])
    expect(await statusOf(run)).not.toBe('suspended')
  })

  const session = '0b5c2f2e-7f3a-4c1e-9d55-4a7d1c0e9b11'
  const names: [name: string, more: object, headers: Record<string, string>, joins: string | undefined][] = [
    ['X-Thread-Id', {}, { 'x-thread-id': 'mine' }, 'mine'],
    ['x-session-id', {}, { 'x-session-id': `ses_${session}` }, `ses_${session}`],
    ['prompt_cache_key', { prompt_cache_key: `session_${session}` }, {}, `session_${session}`],
    ['X-Thread-Id before the others', { prompt_cache_key: session }, { 'x-thread-id': 'mine' }, 'mine'],
    ['a key that an app may give all its users', { prompt_cache_key: 'support-assistant-v2' }, {}, undefined],
  ]
  test.each(names)('a session is one thread: %s', async (_, more, headers, thread) => {
    const { complete, threadOf } = await start({ scripts: { m: createTold(() => [text('ok'), finish()]) } })
    const runs = await Promise.all([1, 2].map(() => complete([main, asked], more, headers)))
    const threads = await Promise.all(runs.map(({ run }) => threadOf(run)))
    if (thread === undefined) expect(new Set(threads).size).toBe(2)
    else expect(threads).toEqual([thread, thread])
  })

  test('a request that brings the result of a call joins the thread of its run, also after many others', async () => {
    const model = createTold((prompt) => {
      if (JSON.stringify(prompt).includes('another')) return [text('ok'), finish()]
      return resultsIn(prompt).size > 0
        ? [text('done'), finish()]
        : [toolCall('c1', 'run_shell_command'), finish('tool-calls')]
    })
    const { complete, threadOf } = await start({ scripts: { m: model } })
    const first = await complete([main, asked])
    for (let i = 0; i < 51; i++) await complete([{ role: 'user', content: 'another' }])
    const result = { role: 'tool', tool_call_id: 'c1', content: 'hi' }
    const second = await complete([main, asked, first.message, result])
    expect(await threadOf(second.run)).toBe(await threadOf(first.run))
    // One that was asked something else has made other calls.
    const other = await complete([main, { role: 'user', content: 'Other?' }, first.message, result])
    expect(await threadOf(other.run)).not.toBe(await threadOf(first.run))
  })

  test.each(['interrupt', 'reject', 'queue'])(
    'runs of a session do not wait for each other: onBusy: %s',
    async (onBusy) => {
      const gate = latch()
      const model = createScriptedModel([
        [text('Hel'), gate, text('lo'), finish()],
        [text('A title'), finish()],
      ])
      const { complete } = await start({ scripts: { m: model } }, '', `onBusy: ${onBusy}`)
      const key = { prompt_cache_key: session }
      const answer = complete([main, asked], key)
      await expect.poll(() => model.calls.length).toBe(1)
      const title = await complete([{ role: 'system', content: 'Generate a title.' }, asked], {
        ...key,
        tools: undefined,
      })
      expect(title.message.content).toBe('A title')
      gate.open()
      expect((await answer).message.content).toBe('Hello')
    },
  )

  test.each([true, false])(
    'a request that is repeated after its run failed, streamed: %j, runs no tool again for a minute',
    async (stream) => {
      let charged = 0
      let later = 0
      const charge = { description: 'Charges.', parameters: z.object({}), execute: () => ++charged }
      const model = createTold((prompt) =>
        resultsIn(prompt).size > 0
          ? [text('Charged. '), errorPart('out of luck')]
          : [text('So. '), toolCall('c1', 'charge'), finish('tool-calls')],
      )
      const server = await startServer({
        agents: { a: agent('tools: [charge]\nretries: 0') },
        tools: { charge },
        scripts: { m: model },
        wrapStore: (store) => ({ ...store, now: () => Date.now() + later }),
      })
      onTestFinished(() => server.close())
      const ask = async (said: string, headers: Record<string, string> = {}) => {
        const body = { model: 'a', stream, messages: [{ role: 'user', content: said }] }
        const response = await server.post('/v1/chat/completions', body, { headers })
        return [response.status, (await response.text()).replaceAll(/chatcmpl-\w+|"created":\d+/gu, '')]
      }
      const first = await ask('Charge.')
      expect(first).toEqual([stream ? 200 : 400, expect.stringContaining('out of luck')])
      later = 50_000
      expect(await ask('Charge.')).toEqual(first)
      expect(charged).toBe(1)
      await ask('Charge!')
      await ask('Charge.', { authorization: 'Bearer another' })
      await ask('Charge.', { 'x-thread-id': 'another' })
      expect(charged).toBe(4)
      later = 70_000
      await ask('Charge.')
      expect(charged).toBe(5)
    },
  )
})

/** The turn of agents/bernard.yaml: a router and a memory, then the answer; what is recorded of it, and how often. */
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { createRunFold } from '../../src/fold/run-fold.ts'
import type { Entry } from '../../src/part/entry.ts'
import type { Message } from '../../src/part/message.ts'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import type { ChatCompletion } from '../../src/wire/openai/openai-completion.ts'
import { openaiWire } from '../../src/wire/openai/openai.ts'
import { complete } from '../openai-items.ts'
import { createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

const shipped = readFileSync(new URL('../../agents/bernard.yaml', import.meta.url), 'utf8')
const user = (content: string): Message => ({ role: 'user', content })

/** The shipped file, with a script in the place of each of its models. */
function setUp({ router, answer, top = '' }: { router: ScriptStep[][]; answer: ScriptStep[][]; top?: string }) {
  const scripts = { router: createScriptedModel(router), answer: createScriptedModel(answer) }
  const names = ['script:router', 'script:answer']
  const yaml = shipped.replaceAll('"demo:assistant"', () => `"${names.shift()}"`)
  expect(names).toEqual([])
  return { options: { agents: { bernard: `${top}\n${yaml}` }, scripts } satisfies EngineOptions, scripts }
}

function engineOf(options: EngineOptions): Engine {
  const engine = createEngine(options)
  open.push(engine)
  return engine
}

const calculate = (id: string, expression: string) => toolCall(id, 'calculator', { expression })
const handOver = (id = 'r') => [toolCall(id, 'respond', {}), finish('tool-calls')]
const turn = (id: string, expression: string) => [
  [calculate(id, expression), toolCall(`${id}t`, 'getCurrentTime'), finish('tool-calls')],
  handOver(`${id}r`),
]

function viewOf(entries: readonly Entry[]) {
  const fold = createRunFold()
  for (const entry of entries) fold.apply(entry)
  return fold.view()
}

/** How often what was said and done stands in the record. */
function countsOf(entries: readonly Entry[]) {
  const start = only(entries, 'run-start')[0]!
  const results = only(entries, 'tool-result').map(({ toolCallId }) => toolCallId)
  return {
    users: (start.input['messages'] as Message[]).filter(({ role }) => role === 'user').length,
    prompts: only(entries, 'prompt').map(({ stage }) => stage),
    modelCalls: only(entries, 'step-start').filter(({ stepType }) => stepType === 'model-call').length,
    usages: only(entries, 'usage').length,
    calls: only(entries, 'tool-call').map(({ toolCallId }) => toolCallId),
    results: results.toSorted(),
    answers: viewOf(entries).messages,
    ends: entries.filter(({ type }) => type === 'answer-end' || type === 'run-end').length,
  }
}

describe('bernard agent', () => {
  test('exact counts: the user’s message once, a record for each model call, each tool result once, the answer once', async () => {
    const { options, scripts } = setUp({ router: turn('c1', '6*7'), answer: [[text('It ', 'is 42.'), finish()]] })
    const engine = engineOf(options)
    const run = await engine.runtime.start('bernard-v1', { messages: [user('What is 6*7?')] })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'It is 42.', usage: { inputTokens: 30 } })
    const entries = await entriesOf(engine.store, run.id)
    expect(countsOf(entries)).toEqual({
      users: 1,
      prompts: ['router', 'router', 'response'],
      modelCalls: 3,
      usages: 3,
      calls: ['c1', 'c1t', 'c1r'],
      results: ['c1', 'c1r', 'c1t'],
      answers: [{ role: 'assistant', id: run.id, content: [{ type: 'text', text: 'It is 42.' }] }],
      ends: 2,
    })
    expect([scripts.router.calls.length, scripts.answer.calls.length]).toEqual([2, 1])
    // Who answers is told the calculator's result, once.
    expect(JSON.stringify(scripts.answer.calls[0]!.options.prompt).match(/"result":42/gu)).toHaveLength(1)
    const kept = only(entries, 'step-finish').find(({ step }) => step === 'after/remember')
    expect(kept!.result).toEqual({ stored: ['What is 6*7?'] })
  })

  test('streamed or not: the same record, the same answer, in the order of the contract', async () => {
    const play = () => setUp({ router: turn('c1', '6*7'), answer: [[text('It ', 'is 42.'), finish()]] })
    const record = async (change: (yaml: string) => string) => {
      const { options } = play()
      const engine = engineOf({ ...options, agents: { bernard: change(options.agents.bernard) } })
      const run = await engine.runtime.start('bernard', { messages: [user('What is 6*7?')] }, { runId: 'run_1' })
      await run.result
      return entriesOf(engine.store, run.id)
    }
    const streamed = await record((yaml) => yaml)
    const blocking = await record((yaml) => yaml.replace('stream: true', 'stream: false'))
    const plain = (entries: Entry[]) => {
      const { users, prompts, modelCalls, usages, calls, results } = countsOf(entries)
      return { users, prompts, modelCalls, usages, calls, results }
    }
    expect(plain(blocking)).toEqual(plain(streamed))

    const openai = { extensions: ['tools', 'trace'] as ('tools' | 'trace')[], includeUsage: true }
    const encoder = openaiWire.createEncoder({}, openai)
    const body = streamed.map((entry) => encoder.encode(entry)).join('')
    const whole = (complete(streamed, openai) as { body: ChatCompletion }).body
    expect(whole.choices[0].message.content).toBe('It is 42.')
    const told = framesOf(body).flatMap((frame): string[] => {
      if (frame === 'done') return ['done']
      if (frame['bernard'] !== undefined) return [(frame['bernard'] as { stage: string }).stage]
      const [choice] = frame['choices'] as { delta: Record<string, unknown>; finish_reason: string | null }[]
      if (choice === undefined) return ['usage']
      if (choice.finish_reason !== null) return [choice.finish_reason]
      return Object.entries(choice.delta).flatMap(([key, value]) => (value === '' ? [] : [key]))
    })
    expect(told).toEqual([
      'role',
      'router',
      'tool_calls',
      'tool_calls',
      'tool_outputs',
      'tool_outputs',
      'router',
      'response',
      'content',
      'content',
      'stop',
      'usage',
      'done',
    ])
    expect(body).not.toContain('respond"')
  })

  test.each(['client', 'server'] as const)('nothing is doubled on a second turn (history: %s)', async (history) => {
    const { options, scripts } = setUp({
      router: [...turn('c1', '6*7'), ...turn('c2', '2+2')],
      answer: [
        [text('It is 42.'), finish()],
        [text('It is 4.'), finish()],
      ],
    })
    const engine = engineOf(options)
    const start = (messages: Message[]) => engine.runtime.start('bernard', { messages }, { threadId: 't', history })
    const first = await start([user('What is 6*7?')])
    await first.result
    const before = viewOf(await entriesOf(engine.store, first.id)).messages
    const second = await start(
      history === 'server' ? [user('And 2+2?')] : [user('What is 6*7?'), ...before, user('And 2+2?')],
    )
    expect(await second.result).toMatchObject({ text: 'It is 4.', usage: { inputTokens: 30 } })
    const entries = await entriesOf(engine.store, second.id)
    expect(countsOf(entries)).toMatchObject({
      prompts: ['router', 'router', 'response'],
      usages: 3,
      calls: ['c2', 'c2t', 'c2r'],
      results: ['c2', 'c2r', 'c2t'],
      answers: [{ content: [{ text: 'It is 4.' }] }],
    })
    // The models are told each turn once; of the first turn the answer, not how it was found.
    const told = scripts.answer.calls[1]!.options.prompt
    expect(told.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user', 'assistant', 'tool'])
    expect(scripts.router.calls[2]!.options.prompt.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
    ])
    for (const words of ['What is 6*7?', 'It is 42.', 'And 2+2?']) {
      expect(JSON.stringify(told).split(words).length - 1, words).toBe(1)
    }
    const kept = only(entries, 'step-finish').find(({ step }) => step === 'after/remember')
    expect(kept!.result).toEqual({ stored: ['And 2+2?'] })
  })

  test('a client that sends only its last message: the memory has what it left out', async () => {
    const { options, scripts } = setUp({
      router: [handOver(), handOver()],
      answer: [
        [text('Noted.'), finish()],
        [text('Ada.'), finish()],
      ],
    })
    const engine = engineOf(options)
    for (const words of ['My boat is called Ada', 'What is my boat called?']) {
      const run = await engine.runtime.start('bernard', { messages: [user(words)] }, { threadId: 't' })
      expect(await run.result).toMatchObject({ outcome: 'completed' })
    }
    expect(JSON.stringify(scripts.answer.calls[0]!.options.prompt[0])).not.toContain('Known from earlier')
    expect(scripts.answer.calls[1]!.options.prompt[0]).toMatchObject({
      role: 'system',
      content: expect.stringContaining('Known from earlier:\n- My boat is called Ada'),
    })
  })

  test('memory and router run at once', async () => {
    const gate = latch()
    const { options } = setUp({ router: [[gate, ...handOver()]], answer: [[text('Hi.'), finish()]] })
    const engine = engineOf(options)
    const run = await engine.runtime.start('bernard', { messages: [user('Hi')] })
    await gate.reached
    await until(
      engine.store,
      run.id,
      ({ type, step }) => type === 'step-finish' && step === 'main/prepare/memory/recall',
    )
    gate.open()
    expect(await run.result).toMatchObject({ text: 'Hi.' })
  })

  async function held(router: ScriptStep[][], answer: ScriptStep[][]) {
    const { options, scripts } = setUp({ router, answer, top: 'onDisconnect: cancel' })
    const server: TestServer = await startServer(options)
    open.push(server)
    const response = await server.post('/api/beddel/chat', { agentId: 'bernard', id: 't', messages: [user('Hi')] })
    return { server, scripts, client: readBody(response), id: response.headers.get('x-millrace-run-id')! }
  }

  test('the first token is on the socket while the model is held; who leaves then leaves a partial answer, aborted', async () => {
    const gate = latch()
    const half: ScriptStep[] = [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'It is' },
      gate,
      { type: 'text-delta', id: 't', delta: ' 42.' },
      { type: 'text-end', id: 't' },
      finish(),
    ]
    const { server, scripts, client, id } = await held(turn('c1', '6*7'), [half])
    expect(await client.until('It is')).toBe('It is')
    await client.leave()
    await until(server.store, id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(server.store, id)
    const view = viewOf(entries)
    expect(view).toMatchObject({ status: 'aborted', text: 'It is' })
    expect(view.messages).toEqual([{ role: 'assistant', id, content: [{ type: 'text', text: 'It is' }] }])
    expect(scripts.answer.calls[0]!.aborted).toBe(true)
    expect(countsOf(entries)).toMatchObject({ users: 1, usages: 3, results: ['c1', 'c1r', 'c1t'] })
    // What comes after an answer does not come after half of one.
    expect(view.steps.map(({ path }) => path)).not.toContain('after/remember')
  })

  test('who leaves while the router works stops its model; the answering step never starts', async () => {
    const gate = latch()
    const { options, scripts } = setUp({ router: [[gate, ...handOver()]], answer: [], top: 'onDisconnect: cancel' })
    const server = await startServer(options)
    open.push(server)
    const leave = new AbortController()
    const request = server.post(
      '/api/beddel/chat',
      { agentId: 'bernard', id: 't', messages: [user('Hi')] },
      { signal: leave.signal },
    )
    const begun = async () => (await server.store.runs.list({ threadId: 't' }))[0]
    await gate.reached
    await expect.poll(begun).toBeDefined()
    leave.abort()
    await request.then((response) => response.body?.cancel()).catch(() => undefined)
    const { id } = (await begun())!
    expect(await until(server.store, id, ({ type }) => type === 'run-end')).toMatchObject({ outcome: 'aborted' })
    expect(scripts.router.calls[0]!.aborted).toBe(true)
    expect(scripts.answer.calls).toEqual([])
    expect(viewOf(await entriesOf(server.store, id)).steps.map(({ path }) => path)).not.toContain('main/response')
  })

  test('as it ships, on the demo model: tools are called and their results said; a second turn remembers', async () => {
    const engine = engineOf({ agents: { bernard: shipped }, environment: { MILLRACE_DEMO_DELAY_MS: '0' } })
    const ask = async (content: string) => {
      const run = await engine.runtime.start('bernard', { messages: [user(content)] }, { threadId: 't' })
      const { outcome, text: answer } = await run.result
      expect(outcome).toBe('completed')
      return { answer, entries: await entriesOf(engine.store, run.id) }
    }
    const first = await ask('What is 12*7, and what time is it in Tokyo?')
    expect(first.answer).toMatch(/^12\*7 = 84\. The time is \d{4}-\d\d-\d\dT[\d:.]+\+09:00\.$/u)
    expect(only(first.entries, 'tool-call').map(({ toolName }) => toolName)).toEqual([
      'calculator',
      'getCurrentTime',
      'respond',
    ])
    const second = await ask('My boat is called Ada.')
    expect(second.answer).toContain('Millrace demo model')
    expect(only(second.entries, 'tool-call').map(({ toolName }) => toolName)).toEqual(['respond'])
    expect((await ask('What do you remember of my boat?')).answer).toMatch(/^I remember .*"My boat is called Ada\."/u)
  })
})

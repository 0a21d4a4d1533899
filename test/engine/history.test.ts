/** What the next turn is told of the turns before: signatures and tool results from the record, and never half a call. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import type { Message } from '../../src/part/message.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { continueOrStart, type Turn } from '../../src/runtime/continue.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { finish, reasoning, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { fromClientMessages } from '../../src/wire/ui/ui-message.ts'
import { agent, createEngine, entriesOf, only, until, type Engine, openEngine } from '../support/engine.ts'
import { createTold, cutAfter, pairingFault, resultsIn } from '../support/going-on.ts'
import { placesOf } from '../support/thorough.ts'

const any = z.looseObject({})
const user = (content: string): Message => ({ role: 'user', content })
const turn = (messages: Message[], more: Partial<Turn> = {}): Turn => ({
  agentId: 'a',
  threadId: 't',
  messages,
  answers: [],
  input: {},
  protocol: 'ui',
  onBusy: 'interrupt',
  history: 'client',
  ...more,
})
async function say({ runtime }: Engine, messages: Message[], more: Partial<Turn> = {}) {
  const { run } = await continueOrStart(runtime, turn(messages, more))
  return run.result
}

const add: ToolImplementation = { parameters: any, execute: ({ n }: { n: number }) => ({ sum: n + 1 }) }
const signature = { test: { signature: 'c2lnbmF0dXJl/+é\u2028==', nested: { b: 1, a: [2, null] } } }
const redacted = { test: { redactedData: 'AAAA' } }
const signed = (prompt: Parameters<Parameters<typeof createTold>[0]>[0]): ScriptStep[] => {
  if (prompt.at(-1)!.role === 'tool') return [text('It is 2.'), finish()]
  return [
    { type: 'reasoning-start', id: 'r1' },
    { type: 'reasoning-delta', id: 'r1', delta: 'One and ' },
    { type: 'reasoning-delta', id: 'r1', delta: 'one.' },
    { type: 'reasoning-delta', id: 'r1', delta: '', providerMetadata: signature },
    { type: 'reasoning-end', id: 'r1' },
    { type: 'reasoning-start', id: 'r2', providerMetadata: redacted },
    { type: 'reasoning-end', id: 'r2' },
    text('Let me see.'),
    toolCall('c1', 'add', { n: 1 }).map((part) =>
      'type' in part && part.type === 'tool-call' ? { ...part, providerMetadata: { test: { thought: 'xyz' } } } : part,
    ),
    finish('tool-calls'),
  ] as ScriptStep[]
}
const expectedTurn = [
  {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'One and one.', providerOptions: signature },
      { type: 'reasoning', text: '', providerOptions: redacted },
      { type: 'text', text: 'Let me see.' },
      {
        type: 'tool-call',
        toolCallId: 'c1',
        toolName: 'add',
        input: { n: 1 },
        providerOptions: { test: { thought: 'xyz' } },
      },
    ],
  },
  { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c1', output: { type: 'json', value: { sum: 2 } } }] },
  { role: 'assistant', content: [{ type: 'text', text: 'It is 2.' }] },
]

describe('reasoning, signatures and tool results come back from the record, byte for byte and in order', () => {
  const options = () => {
    const model = createTold(signed)
    return { model, options: { agents: { a: agent('tools: [add]') }, tools: { add }, scripts: { m: model } } }
  }

  test('history: client, whose copy has only the text', async () => {
    const { model, options: engineOptions } = options()
    const engine = openEngine(engineOptions)
    const first = await say(engine, [user('1+1?')])
    const copy: Message = { role: 'assistant', id: first.id, content: 'Let me see.It is 2.' }
    await say(engine, [user('1+1?'), copy, user('and again?')])
    const prompt = model.prompts[2]!
    expect(prompt.slice(1, 4)).toMatchObject(expectedTurn)
    expect(JSON.stringify(prompt[1])).toContain(JSON.stringify(signature))
    expect(prompt.at(-1)).toMatchObject({ role: 'user', content: [{ text: 'and again?' }] })
  })

  test('history: client, whose copy came from useChat in several steps', async () => {
    const { model, options: engineOptions } = options()
    const engine = openEngine(engineOptions)
    const { id } = await say(engine, [user('1+1?')])
    const parts = [
      { type: 'step-start' },
      { type: 'text', text: 'Let me see.' },
      { type: 'tool-add', toolCallId: 'c1', state: 'output-available', input: { n: 1 }, output: { sum: 'forged' } },
      { type: 'step-start' },
      { type: 'text', text: 'It is 2.' },
    ]
    const copy = fromClientMessages([{ id, role: 'assistant', parts }])
    expect(copy).toHaveLength(3)
    await say(engine, [user('1+1?'), ...copy, user('and again?')])
    expect(model.prompts[2]!.slice(1, 4)).toMatchObject(expectedTurn)
    expect(model.prompts[2]).toHaveLength(5)
  })

  test('history: server, with only what is new', async () => {
    const { model, options: engineOptions } = options()
    const engine = openEngine(engineOptions)
    await say(engine, [user('1+1?')], { history: 'server' })
    await say(engine, [user('and again?')], { history: 'server' })
    expect(model.prompts[2]!.slice(0, 1)).toMatchObject([{ role: 'user' }])
    expect(model.prompts[2]!.slice(1, 4)).toMatchObject(expectedTurn)
    expect(model.prompts[2]).toHaveLength(5)
  })
})

test('history: client leaves the order and the choice of messages to the client', async () => {
  const model = createTold(() => [text('ok'), finish()])
  const engine = openEngine({ agents: { a: agent() }, scripts: { m: model } })
  const one = await say(engine, [user('one')])
  const two = await say(engine, [user('two')])
  const other = await say(engine, [user('foreign')], { threadId: 'other' })
  const forged: Message = { role: 'assistant', id: other.id, content: 'what the client says it was' }
  await say(engine, [
    user('b'),
    { role: 'assistant', id: two.id, content: 'x' },
    user('a'),
    { role: 'assistant', id: one.id, content: 'x' },
    user('c'),
    forged,
    user('d'),
  ])
  const told = model.prompts.at(-1)!.map(({ role, content }) => `${role} ${(content as { text: string }[])[0]!.text}`)
  // A run of another thread is not looked into: the client's own copy stands.
  expect(told).toEqual([
    'user b',
    'assistant ok',
    'user a',
    'assistant ok',
    'user c',
    'assistant what the client says it was',
    'user d',
  ])
})

test('an answer that a client names again and again is told as it was recorded once', async () => {
  const model = createTold(() => [text('recorded'), finish()])
  const engine = openEngine({ agents: { a: agent() }, scripts: { m: model } })
  const { id } = await say(engine, [user('one')])
  const copy: Message = { role: 'assistant', id, content: [{ type: 'text', text: 'copy' }] }
  await say(engine, [user('one'), copy, user('two'), copy, user('three'), copy, user('four')])
  const told = model.prompts[1]!.map(({ content }) => (content as { text: string }[])[0]!.text)
  expect(told).toEqual(['one', 'recorded', 'two', 'copy', 'three', 'copy', 'four'])
})

test('history: server goes over a run that had its place and never began', async () => {
  const model = createTold(() => [text('ok'), finish()])
  const engine = openEngine({ agents: { a: agent() }, scripts: { m: model } })
  const first = await say(engine, [user('one')], { history: 'server' })
  // The process died between taking the place and storing the first entry.
  await engine.store.log.post('thread:t', `after:${first.id}`, { run: 'run_never' })
  const third = await say(engine, [user('three')], { history: 'server' })
  const whole = ['user', 'assistant', 'user']
  expect(model.prompts.at(-1)!.map(({ role }) => role)).toEqual(whole)
  // A fork has a thread of its own, in which that run has no place; nor has it in the one of a fork's fork.
  const fork = await engine.runtime.fork(third.id, { at: 1 })
  await fork.result
  expect(model.prompts.at(-1)!.map(({ role }) => role)).toEqual(whole)
  const again = await engine.runtime.fork(fork.id, { at: 1 })
  await again.result
  expect(model.prompts.at(-1)!.map(({ role }) => role)).toEqual(whole)
  const { threadId } = (await engine.store.runs.get(again.id))!
  await say(engine, [user('four')], { history: 'server', threadId })
  expect(model.prompts.at(-1)!.map(({ role }) => role)).toEqual([...whole, 'assistant', 'user'])
})

describe('a conversation that hands its calls over', () => {
  const here: ToolImplementation = { parameters: any }
  const asking = createTold((prompt) => {
    const results = resultsIn(prompt)
    if (prompt.at(-1)!.role === 'tool')
      return [text(`They said ${JSON.stringify([...results.values()].at(-1))}.`), finish()]
    return [reasoning('ask'), text('One moment.'), toolCall(`c${results.size}`, 'ask', { q: 1 }), finish('tool-calls')]
  })

  /** A memory store hands over, as the edge does. `parts` is the client's one message, which grows. */
  async function conversation(handOverTo: 'one message' | 'separate messages') {
    const engine = openEngine({
      agents: { a: agent('tools: [ask]') },
      tools: { ask: here },
      scripts: { m: asking },
      wrapStore: () => memoryStore(),
    })
    asking.calls.length = 0
    const first = await say(engine, [user('Hi')])
    expect(first.outcome).toBe('completed')
    const call = {
      type: 'tool-ask',
      toolCallId: 'c0',
      state: 'output-available',
      input: { q: 1 },
      output: { city: 'Rome' },
    }
    const parts: object[] = [{ type: 'step-start' }, { type: 'text', text: 'One moment.' }, call]
    const answered = fromClientMessages([{ id: first.id, role: 'assistant', parts }])
    const second = await say(engine, [user('Hi'), ...answered])
    const told = asking.prompts[1]!
    expect(resultsIn(told).get('c0')).toEqual({ type: 'json', value: { city: 'Rome' } })
    const tail = [{ type: 'step-start' }, { type: 'text', text: second.text }]
    const copy =
      handOverTo === 'one message'
        ? fromClientMessages([{ id: second.id, role: 'assistant', parts: [...parts, ...tail] }])
        : [...answered, ...fromClientMessages([{ id: second.id, role: 'assistant', parts: tail }])]
    await say(engine, [user('Hi'), ...copy, user('Thanks')])
    return { prompt: asking.prompts.at(-1)! }
  }

  test.each(['one message', 'separate messages'] as const)(
    "keeps the client's results and all it showed (%s)",
    async (how) => {
      const { prompt } = await conversation(how)
      expect(pairingFault(prompt)).toBeUndefined()
      expect(prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user'])
      expect(resultsIn(prompt).get('c0')).toEqual({ type: 'json', value: { city: 'Rome' } })
      expect(JSON.stringify(prompt[1])).toContain('"ask"')
      expect(JSON.stringify(prompt[3])).toContain('They said')
    },
  )
})

test('history: server with calls that were handed over: the results that come stand for them', async () => {
  const ask: ToolImplementation = { parameters: any }
  const model = createTold((prompt) =>
    prompt.at(-1)!.role === 'tool' ? [text('Thanks.'), finish()] : [toolCall('c', 'ask', {}), finish('tool-calls')],
  )
  const engine = openEngine({
    agents: { a: agent('tools: [ask]') },
    tools: { ask },
    scripts: { m: model },
    wrapStore: () => memoryStore(),
  })
  await say(engine, [user('Hi')], { history: 'server' })
  const output = { type: 'json' as const, value: 42 }
  const result: Message = { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'ask', output }] }
  expect(await say(engine, [result], { history: 'server' })).toMatchObject({ outcome: 'completed', text: 'Thanks.' })
  const told = model.prompts[1]!
  expect(told.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
  expect(resultsIn(told).get('c')).toEqual(output)
})

test('a result that the client has and the run did not wait for is told all the same', async () => {
  const ask: ToolImplementation = { parameters: any }
  const model = createTold((prompt) =>
    prompt.length === 1
      ? [text('One moment.'), toolCall('c', 'ask', {}), finish('tool-calls')]
      : [text('ok'), finish()],
  )
  const engine = openEngine({ agents: { a: agent('tools: [ask]') }, tools: { ask }, scripts: { m: model } })
  const first = await say(engine, [user('Hi')])
  expect(first.outcome).toBe('suspended')
  const part = { type: 'tool-ask', toolCallId: 'c', state: 'output-available', input: {}, output: 42 }
  const copy = fromClientMessages([
    { id: first.id, role: 'assistant', parts: [{ type: 'text', text: 'One moment.' }, part] },
  ])
  await say(engine, [user('Hi'), ...copy, user('Never mind')])
  expect(resultsIn(model.prompts[1]!).get('c')).toEqual({ type: 'json', value: 42 })
})

describe('a run that was cut off never poisons its thread', () => {
  const ask: ToolImplementation = { parameters: any }
  const tools = { add, ask }
  const scripts = () => ({
    m: createTold((prompt): ScriptStep[] => {
      if (JSON.stringify(prompt.at(-1)).includes('go on')) return [text('Gladly.'), finish()]
      const results = resultsIn(prompt)
      if (results.size === 0) {
        const calls = [toolCall('c1', 'add', { n: 1 }), toolCall('c2', 'ask', {}), toolCall('c3', 'add', { n: 2 })]
        return [reasoning('hm'), text('Let me see.'), ...calls, finish('tool-calls')]
      }
      return results.size === 3
        ? [text('More.'), toolCall('c4', 'add', { n: 3 }), finish('tool-calls')]
        : [text('Done.'), finish()]
    }),
  })
  const agents = { a: agent('tools: [add, ask]') }

  async function recording(): Promise<Entry[]> {
    const engine = createEngine({ agents, tools, scripts: scripts() })
    try {
      const { run } = await continueOrStart(engine.runtime, turn([user('Hi')]))
      const request = await until(engine.store, run.id, ({ type }) => type === 'request')
      await run.result
      await run.answer((request as { requestId: string }).requestId, { kind: 'tool', output: 'yes' })
      await until(engine.store, run.id, ({ type }) => type === 'run-end')
      return await entriesOf(engine.store, run.id)
    } finally {
      await engine.close()
    }
  }

  test.each(['client', 'server'] as const)('cut after any entry, then a new message (history: %s)', async (history) => {
    const entries = await recording()
    const { runId } = only(entries, 'run-start')[0]!
    // The other half of the places with the other history.
    for (const k of placesOf(entries.length - 1, history === 'client' ? 0 : 1, 2)) {
      const { m } = scripts()
      const engine = await cutAfter(entries, k, { agents, tools, scripts: { m } })
      try {
        await engine.runtime.recover()
        const copy: Message = { role: 'assistant', id: runId, content: 'what it showed' }
        const messages = history === 'client' ? [user('Hi'), copy, user('go on')] : [user('go on')]
        const next = await say(engine, messages, { history })
        const where = `cut after ${k}, ${entries[k - 1]!.type}`
        expect(next, where).toMatchObject({ outcome: 'completed', text: 'Gladly.' })
        expect(m.calls, where).toHaveLength(1)
        expect(pairingFault(m.prompts[0]!), where).toBeUndefined()
        // Whatever was complete is told.
        const known = only(entries.slice(0, k), 'tool-result').map(({ toolCallId }) => toolCallId)
        const told = resultsIn(m.prompts[0]!)
        for (const id of known) expect(told.get(id), where).toMatchObject({ type: id === 'c2' ? 'text' : 'json' })
        expect(only(await entriesOf(engine.store, runId), 'run-end'), where).toHaveLength(1)
      } finally {
        await engine.close()
      }
    }
  })
})

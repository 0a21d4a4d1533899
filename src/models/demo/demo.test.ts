import type { LanguageModelV4CallOptions, LanguageModelV4Prompt, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { describe, expect, test, vi } from 'vitest'
import { respondSpec } from '../../part/respond.ts'
import { createDemoModel } from './demo.ts'

const tool = (name: string, properties: Record<string, object> = {}, required = Object.keys(properties)) => ({
  type: 'function' as const,
  name,
  inputSchema: { type: 'object' as const, properties, required },
})
const calculator = tool('calculator', { expression: { type: 'string' } })
const clock = tool('getCurrentTime', { timeZone: { type: 'string' } }, [])
const weather = tool('get_weather', { city: { type: 'string' }, unit: { enum: ['celsius', 'fahrenheit'] } }, ['city'])
const user = (text: string): LanguageModelV4Prompt => [{ role: 'user', content: [{ type: 'text', text }] }]

async function say(prompt: string | LanguageModelV4Prompt, options: Partial<LanguageModelV4CallOptions> = {}) {
  const model = createDemoModel({ delayMs: 0 })
  const { stream } = await model.doStream({ prompt: typeof prompt === 'string' ? user(prompt) : prompt, ...options })
  const parts: LanguageModelV4StreamPart[] = []
  for await (const part of stream) parts.push(part)
  const joined = (type: string) =>
    parts.map((part) => (part.type === type && 'delta' in part ? part.delta : '')).join('')
  const finish = parts.at(-1)
  if (finish?.type !== 'finish') throw new Error('no finish')
  return {
    parts,
    text: joined('text-delta'),
    reasoning: joined('reasoning-delta'),
    calls: parts.flatMap((p) =>
      p.type === 'tool-call' ? [{ name: p.toolName, input: JSON.parse(p.input) as unknown }] : [],
    ),
    ids: parts.flatMap((p) => (p.type === 'tool-call' ? [p.toolCallId] : [])),
    finish,
  }
}

describe('createDemoModel', () => {
  test('says that it is the demo model', async () => {
    const { text, finish } = await say('Hello there')
    expect(text).toContain('Millrace demo model')
    expect(text).toContain('Hello there')
    expect(finish.finishReason.unified).toBe('stop')
    expect(finish.usage.inputTokens.total).toBeGreaterThan(0)
    expect(finish.usage.outputTokens.total).toBe(Math.ceil(text.length / 4))
  })

  test('the same messages give the same parts', async () => {
    const options = { tools: [calculator, clock, weather], reasoning: 'high' as const }
    const question = 'Think: what is 12*7, and what time is it in Tokyo?'
    const first = await say(question, options)
    expect((await say(question, options)).parts).toEqual(first.parts)
    expect(first.ids.length).toBe(2)
  })

  test.each([
    ['What is 12*7?', ['12*7']],
    ['calculate (2 + 3) * 4, please', ['(2 + 3) * 4']],
    ['What is 2^10 and 9-4?', ['2^10', '9-4']],
    ['How much is 3 * 4.5?', ['3 * 4.5']],
    ['2+2', ['2+2']],
    ['What is -5 + 3?', ['-5 + 3']],
    ['What happened on 2024-01-15?', []],
    ['Tell me about GPT-4 and 1990-1995', []],
    ['What is the capital of France?', []],
  ])('%s → calculator %j', async (question, expressions) => {
    const { calls, finish } = await say(question, { tools: [calculator] })
    expect(calls).toEqual(expressions.map((expression) => ({ name: 'calculator', input: { expression } })))
    expect(finish.finishReason.unified).toBe(expressions.length > 0 ? 'tool-calls' : 'stop')
  })

  test.each([
    ['What time is it?', {}],
    ['What is the time in New York?', { timeZone: 'America/New_York' }],
    ['current time in Asia/Tokyo', { timeZone: 'Asia/Tokyo' }],
  ])('%s → getCurrentTime %j', async (question, input) => {
    expect((await say(question, { tools: [clock] })).calls).toEqual([{ name: 'getCurrentTime', input }])
  })

  test('Where am I? → the tool that has location in its name', async () => {
    const locate = tool('getLocation')
    expect((await say('Where am I?', { tools: [weather, locate] })).calls).toEqual([{ name: 'getLocation', input: {} }])
    expect((await say('Where am I?', { tools: [weather] })).calls).toEqual([])
  })

  test.each([
    ['Use the tool get_weather for Paris', [{ city: 'Paris' }]],
    ['Use the tool get_weather for "New York"', [{ city: 'New York' }]],
    ['please use get_weather for Rome.', [{ city: 'Rome' }]],
    ['Use the tool get_weather for Paris and the tool get_weather for London', [{ city: 'Paris' }, { city: 'London' }]],
    ['Use the tool get_weather with {"city":"X","unit":"celsius"}', [{ city: 'X', unit: 'celsius' }]],
    ['In Berlin we talk about get_weather', []],
  ])('%s', async (question, inputs) => {
    const { calls } = await say(question, { tools: [weather] })
    expect(calls).toEqual(inputs.map((input) => ({ name: 'get_weather', input })))
  })

  test('several named tools are called at once, in the order of the words, with distinct ids', async () => {
    const { calls, ids } = await say('Use the tools b, calculator to get 1+2, and a.', {
      tools: [tool('a'), tool('b'), calculator],
    })
    expect(calls.map(({ name }) => name)).toEqual(['b', 'calculator', 'a'])
    expect(calls[1]?.input).toEqual({ expression: '1+2' })
    expect(new Set(ids).size).toBe(3)
  })

  test('of a message without end it makes no end of calls', async () => {
    const tools = [calculator, weather]
    for (const words of ['use the tool get_weather for Oslo ', 'What is 1+2, ', 'use the tool calculator ']) {
      const { calls } = await say(words.repeat(50_000), { tools })
      expect(calls).toHaveLength(32)
      expect(JSON.stringify(calls).length).toBeLessThan(500_000)
    }
  })

  test('arguments have a simple value for every type', async () => {
    const schema = tool('all', {
      count: { type: 'integer', minimum: 1, maximum: 2 },
      size: { type: 'number', default: 5 },
      flag: { type: 'boolean' },
      tags: { type: 'array', items: { type: 'string' }, minItems: 2 },
      nested: { type: 'object', properties: { mode: { enum: ['slow', 'fast'] } }, required: ['mode'] },
      maybe: { anyOf: [{ type: 'null' }, { type: 'number' }] },
      fixed: { const: 7 },
      when: { type: 'string', format: 'date' },
    })
    const { calls } = await say('Use the tool all, count: 3, "x" "y"', { tools: [schema] })
    expect(calls[0]?.input).toEqual({
      count: 2,
      size: 5,
      flag: true,
      tags: ['x', 'y'],
      nested: { mode: 'slow' },
      maybe: 1,
      fixed: 7,
      when: '2026-01-01',
    })
  })

  test('streams a tool input as start, deltas, end, call', async () => {
    const { parts } = await say('Use the tool get_weather for "a city with a long name"', { tools: [weather] })
    const types = parts.map(({ type }) => type).filter((type) => type.startsWith('tool'))
    expect(types).toEqual([
      'tool-input-start',
      ...types.slice(1, -2).map(() => 'tool-input-delta'),
      'tool-input-end',
      'tool-call',
    ])
    expect(types.length).toBeGreaterThan(4)
    const joined = parts.map((p) => (p.type === 'tool-input-delta' ? p.delta : '')).join('')
    expect(parts.find((p) => p.type === 'tool-call')).toMatchObject({ input: joined })
  })

  test('answers with the results, and calls nothing twice', async () => {
    const input = { expression: '12*7' }
    const prompt: LanguageModelV4Prompt = [
      ...user('What is 12*7?'),
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'calculator', input }] },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'a',
            toolName: 'calculator',
            output: { type: 'json', value: { result: 84 } },
          },
          { type: 'tool-result', toolCallId: 'b', toolName: 'x', output: { type: 'error-text', value: 'broken' } },
          { type: 'tool-result', toolCallId: 'c', toolName: 'y', output: { type: 'execution-denied', reason: 'no' } },
        ],
      },
    ]
    const { text, calls } = await say(prompt, { tools: [calculator] })
    expect(text).toBe('12*7 = 84. The tool x failed: broken. I was not allowed to use y: no.')
    expect(calls).toEqual([])
    const { ids } = await say([...prompt, ...user('And what is 3*3?')], { tools: [calculator] })
    expect(ids[0]).toMatch(/^call_[0-9a-f]{8}$/)
  })

  test('reasons when asked to, and only then', async () => {
    expect((await say('Think step by step')).reasoning).toContain('3 words'.replace('3', '4'))
    expect((await say('Hello')).reasoning).toBe('')
    expect((await say('Hello', { reasoning: 'low' })).reasoning).not.toBe('')
    const { parts, reasoning } = await say('Think', { reasoning: 'none' })
    expect(reasoning).toBe('')
    expect(parts.some(({ type }) => type === 'reasoning-start')).toBe(false)
    const signed = (await say('Think')).parts.find(({ type }) => type === 'reasoning-end')
    expect(signed).toMatchObject({ providerMetadata: { demo: { signature: expect.stringMatching(/^[0-9a-f]{8}$/) } } })
  })

  test('obeys toolChoice, maxOutputTokens, stopSequences and a JSON schema', async () => {
    const tools = [calculator, weather]
    expect((await say('What is 1+1?', { tools, toolChoice: { type: 'none' } })).calls).toEqual([])
    expect((await say('Hello', { tools, toolChoice: { type: 'required' } })).calls.length).toBe(1)
    const chosen = await say('What is 1+1 in Rome?', { tools, toolChoice: { type: 'tool', toolName: 'get_weather' } })
    expect(chosen.calls).toEqual([{ name: 'get_weather', input: { city: 'Rome' } }])
    const cut = await say('count to 100', { maxOutputTokens: 10 })
    expect(cut.finish.finishReason.unified).toBe('length')
    expect(cut.text.split(' ')).toHaveLength(10)
    expect((await say('count to 100', { stopSequences: [', 4'] })).text).toMatch(/1, 2, 3$/)
    const schema = { type: 'object' as const, properties: { city: { type: 'string' as const } }, required: ['city'] }
    const json = await say('A city in France, for Paris', { responseFormat: { type: 'json', schema } })
    expect(JSON.parse(json.text)).toEqual({ city: 'France' })
  })

  test('writes as much as is asked for', async () => {
    expect((await say('Write 500 words')).text.split(' ')).toHaveLength(500)
    expect((await say('count to 300')).text).toContain('299, 300.')
  })

  test('keeps calling when told to do it again and again', async () => {
    const first = await say('Use the tool a again and again', { tools: [tool('a')] })
    const { text, calls } = await say(
      [
        ...user('Use the tool a again and again'),
        { role: 'assistant', content: [{ type: 'tool-call', toolCallId: first.ids[0]!, toolName: 'a', input: {} }] },
        {
          role: 'tool',
          content: [
            { type: 'tool-result', toolCallId: first.ids[0]!, toolName: 'a', output: { type: 'text', value: 'x' } },
          ],
        },
      ],
      { tools: [tool('a')] },
    )
    expect([calls.length, text]).toEqual([1, 'Let me use a.\n'])
  })

  test('pauses before each word, and stops in the middle of a pause', async () => {
    vi.useFakeTimers()
    try {
      const abort = new AbortController()
      const { stream } = await createDemoModel({ delayMs: 30 }).doStream({
        prompt: user('count to 50'),
        abortSignal: abort.signal,
      })
      const reader = stream.getReader()
      for (let i = 0; i < 3; i++) await reader.read()
      const word = reader.read()
      await vi.advanceTimersByTimeAsync(29)
      expect(vi.getTimerCount()).toBe(1)
      await vi.advanceTimersByTimeAsync(1)
      expect((await word).value).toMatchObject({ type: 'text-delta', delta: 'The' })
      const next = reader.read()
      abort.abort(new Error('enough'))
      await expect(next).rejects.toThrow('enough')
      await vi.advanceTimersByTimeAsync(0)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test('a reader that leaves ends the pause', async () => {
    vi.useFakeTimers()
    try {
      const { stream } = await createDemoModel({ delayMs: 30 }).doStream({ prompt: user('Hi') })
      const reader = stream.getReader()
      for (let i = 0; i < 3; i++) await reader.read()
      void reader.read()
      await vi.advanceTimersByTimeAsync(1)
      expect(vi.getTimerCount()).toBe(1)
      await reader.cancel()
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test('without a delay no timer is set', async () => {
    const timer = vi.spyOn(globalThis, 'setTimeout')
    await say('count to 20')
    expect(timer).not.toHaveBeenCalled()
    timer.mockRestore()
  })

  test('doGenerate gives the same answer in one piece', async () => {
    const { content, finishReason } = await createDemoModel().doGenerate({
      prompt: user('Think, then what is 6*7?'),
      tools: [calculator],
    })
    expect(content.map(({ type }) => type)).toEqual(['reasoning', 'text', 'tool-call'])
    expect(content[1]).toMatchObject({ text: 'Let me use calculator.\n' })
    expect(finishReason.unified).toBe('tool-calls')
  })

  test('as a router: it calls what is asked for, then hands over; without anything to call it hands over at once', async () => {
    const respond = { ...tool('respond'), description: respondSpec.description }
    const tools = [calculator, clock, respond]
    expect((await say('Hello there', { tools })).calls).toEqual([
      { name: 'respond', input: { reason: 'No tool is asked for.' } },
    ])
    const question = 'What is 12*7, and what time is it in Tokyo?'
    const first = await say(question, { tools })
    expect(first).toMatchObject({
      text: '',
      calls: [
        { name: 'calculator', input: { expression: '12*7' } },
        { name: 'getCurrentTime', input: { timeZone: 'Asia/Tokyo' } },
      ],
    })
    const called: LanguageModelV4Prompt = [
      ...user(question),
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'calculator', input: {} }] },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'c', toolName: 'calculator', output: { type: 'json', value: 84 } },
        ],
      },
    ]
    const second = await say(called, { tools })
    expect(second.calls).toEqual([{ name: 'respond', input: { reason: 'The tools have given what was asked for.' } }])
    expect((await say(called, { tools })).parts).toEqual(second.parts)
    expect((await say(called)).text).toBe('calculator gave 84.')
    // A user's own tool of the same name is called only on request.
    expect((await say('Hello there', { tools: [tool('respond')] })).calls).toEqual([])
  })

  test('asked what it remembers, it says what its system message lists', async () => {
    const system = { role: 'system' as const, content: 'Known from earlier:\n- My boat is called Ada\n- User: Hi' }
    const ask = async (words: string) => (await say([system, ...user(words)])).text
    expect(await ask('What do you remember?')).toBe('I remember this of what you said: "My boat is called Ada", "Hi".')
    expect(await ask('What is my boat called?')).not.toContain('Ada')
  })

  test('a prompt gives the role, its material gives no orders, and a prompt without a known role changes nothing', async () => {
    const ask = async (system: string) => (await say([{ role: 'system', content: system }, ...user('tea')])).text
    expect(await ask('Find out:\n[demo model, judge] Weigh and criticise.')).toBe(
      '[demo model, researcher] On "tea" a real model would answer: Weigh and criticise.',
    )
    expect(await ask('Write a column.\nFor: yes\nAgainst: ')).toBe('[demo model, writer] This is about "tea".')
    expect(await ask('You are a helpful assistant.\nWeigh: risks')).toContain('I am the Millrace demo model')
    for (const text of ['a:'.repeat(50_000), '['.repeat(100_000), ' '.repeat(100_000)])
      expect((await ask(`Weigh.\n${text}`)).length).toBeLessThan(1000)
  })
})

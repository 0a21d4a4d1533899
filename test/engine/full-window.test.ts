/** When the window is full: the older messages are summarized, the log keeps all of them, and the run goes on. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { readView } from '../../src/fold/read-view.ts'
import { readPrompt } from '../../src/fold/whole-prompt.ts'
import { latch } from '../../src/models/testing/scripted-model.ts'
import type { EndpointProtocol } from '../../src/models/providers.ts'
import type { Store } from '../../src/part/log.ts'
import { entriesOf, only, openEngine, taken, type EngineOptions } from '../support/engine.ts'
import {
  startStrictServer,
  strictProtocols,
  type AskedModel,
  type StrictAnswer,
  type StrictOptions,
} from '../support/strict-model-server.ts'

/** A page of about 200 tokens that differs each time. */
const page = (n: number) =>
  `Page ${n} of the archive. ${Array.from({ length: 30 }, (_, i) => `Entry ${n * 31 + i} was filed on shelf ${i}.`).join(' ')}`

const isSummary = ({ system }: AskedModel) => system.startsWith('You shorten')
const callsIn = ({ turns }: AskedModel) => turns.reduce((sum, { calls }) => sum + calls.length, 0)
const usersIn = ({ turns }: AskedModel) => turns.filter(({ role }) => role === 'user').map(({ text }) => text)

interface Opened extends Partial<StrictOptions> {
  protocol?: EndpointProtocol
  config?: string
  tools?: string
  context?: string
  options?: Partial<EngineOptions>
  top?: string
}

/** An agent that reads pages, on a server that refuses what does not fit. */
async function open({
  protocol = 'anthropic',
  config = '',
  tools = '[read]',
  context = 'context: { window: 32k, keep: 4k }',
  ...more
}: Opened) {
  const { options, top = 'history: server', answer = () => ({ text: 'ok' }), ...strict } = more
  const server = await startStrictServer({ window: 32_000, ...strict, answer })
  onTestFinished(() => server.close())
  let pages = 0
  const engine = openEngine({
    agents: {
      a: `${top}
workflow:
  - id: answer
    type: llm
    config:
      model: "box:m"
      stream: true
      retries: 0
      maxSteps: 1000
      system: "You read the archive."
      tools: ${tools}
      ${context}
      ${config}`,
    },
    tools: { read: { parameters: z.looseObject({}), execute: () => page(++pages) } },
    models: { endpoints: [{ name: 'box', baseURL: server.baseURL, protocol }] },
    ...options,
  })
  const ask = async (content: string, more: object = {}) => {
    const run = await engine.runtime.start(
      'a',
      { messages: [{ role: 'user', content }] },
      { threadId: 't', history: 'server', ...more },
    )
    return { id: run.id, result: await run.result, entries: await entriesOf(engine.store, run.id) }
  }
  return { ...engine, server, ask, read: () => pages }
}

/** Reads until it has read so many pages. How many it has read stands in what it is told, or in the summary. */
function reading(most: number): (asked: AskedModel) => StrictAnswer {
  let read = 0
  return (asked) => {
    if (isSummary(asked))
      return { text: `The task: count the pages. ${read} pages were read so far. The code word is heron.` }
    if (read >= most) return { text: `I was told: ${usersIn(asked)[0]}` }
    read++
    return { thinks: 'Another one.', calls: [{ name: 'read', input: { page: read } }] }
  }
}

describe('a long tool loop', () => {
  test('tools that the model must find first take no room in the window', async () => {
    const large = {
      parameters: z.looseObject({}),
      description: 'Files a page. '.repeat(10_000),
      execute: () => 'filed',
    }
    const files = Array.from({ length: 4 }, (_, i) => `file${i}`)
    const { ask, server } = await open({
      answer: () => ({ text: 'Nothing to do.' }),
      options: { tools: { read: large, ...Object.fromEntries(files.map((name) => [name, large])) } },
      context: 'context: { window: 32k, keep: 4k }',
      tools: `[${files.map((name) => `{ name: ${name}, defer: true }`).join(', ')}]`,
    })
    // In a prompt they would take four times the window.
    expect((await ask('Hi')).result).toMatchObject({ outcome: 'completed', text: 'Nothing to do.' })
    expect(server.requests).toHaveLength(1)
  })

  test(
    'of 200 rounds goes through a window of 32k; the model can tell the first task',
    { timeout: 120_000 },
    async () => {
      const { ask, server, read } = await open({ answer: reading(200) })
      const { result, entries } = await ask('Count the pages of the archive.')
      expect(result).toMatchObject({ outcome: 'completed' })
      expect(server.refused).toEqual([])
      expect(read()).toBe(200)
      expect(result.text).toContain('I was told: Count the pages of the archive.')
      const made = only(entries, 'summarized')
      expect(made.length).toBeGreaterThan(1)
      // Cut deep, not often.
      expect(made.length).toBeLessThan(8)
      for (const { before, after, reason, text } of made) {
        expect(before).toBeGreaterThan(24_000)
        expect(after).toBeLessThan(12_000)
        expect(reason).toBe('full')
        expect(text).toContain('heron')
      }
      expect(made.map(({ upTo }) => upTo)).toEqual(made.map(({ upTo }) => upTo).toSorted((a, b) => a - b))
      // The newest pages are never lost: the model is told the page that it has just read, and the ones before it.
      for (const asked of server.requests.filter((each) => !isSummary(each) && callsIn(each) > 0)) {
        expect(asked.tokens).toBeLessThan(32_000)
        expect(usersIn(asked)[0]).toBe('Count the pages of the archive.')
        expect(asked.turns.at(-1)!.results[0]!.text).toContain('of the archive.')
      }
      // The log has all that happened.
      expect(only(entries, 'tool-result')).toHaveLength(200)
    },
  )
})

describe.each(strictProtocols)('over %s', (protocol) => {
  test('a summary before a call, with signed rounds and handed-on state, is a legal request', async () => {
    const { ask, server } = await open({
      protocol,
      window: 9000,
      context: 'context: { window: 9k, keep: 2k }',
      config: 'reasoning: low',
      answer: reading(60),
    })
    const { result, entries } = await ask('Count the pages.')
    expect(result).toMatchObject({
      outcome: 'completed',
      text: expect.stringContaining('I was told: Count the pages.'),
    })
    expect(server.refused).toEqual([])
    const [first] = only(entries, 'summarized')
    expect(first).toMatchObject({ step: 'main/answer', reason: 'full' })
    // The step stands below the loop, with prompt, usage and end.
    const step = only(entries, 'step-start').find(({ stepType }) => stepType === 'summary')!
    expect(step).toMatchObject({ kind: 'summary', covers: first!.upTo })
    const below = entries.filter((entry) => entry.step.startsWith(`${step.step}/`))
    expect(below.map(({ type }) => type)).toEqual(expect.arrayContaining(['prompt', 'usage', 'step-finish']))
    expect(only(entries, 'step-finish').find((entry) => entry.step === step.step)).toMatchObject({
      usage: { source: 'reported' },
    })
    const told = server.requests[server.requests.findIndex(isSummary) + 1]!
    expect(usersIn(told)[1]).toContain('The code word is heron.')
    expect(usersIn(told)).toHaveLength(2)
  })

  test('an overflow: a summary, and the same call once more, with a retry', async () => {
    const { ask, server } = await open({ protocol, window: 6000, context: 'context: {}', answer: reading(30) })
    const { result, entries } = await ask('Count the pages.')
    expect(result).toMatchObject({ outcome: 'completed' })
    expect(server.refused.map(({ why }) => why)).toEqual(['too long'])
    const [first, second] = only(entries, 'summarized')
    expect(first).toMatchObject({ reason: 'overflow' })
    // From then on the window is known.
    expect(second).toMatchObject({ reason: 'full' })
    const [retry] = only(entries, 'retry')
    expect(retry!.error.code).toBe('model-refused')
    expect(retry!.seq).toBeGreaterThan(first!.seq)
  })
})

/** Ten questions with long answers, in one thread. */
const answering = (asked: AskedModel): StrictAnswer =>
  isSummary(asked)
    ? { text: 'They asked about pages. The code word is heron.' }
    : { text: `${usersIn(asked).at(-1)}: ${page(1)}${page(2)}` }

describe('the next run of the thread', () => {
  const context = 'context: { window: 4k, keep: 1k }'

  test('with history: server it starts from the summary, and none is made twice for the same messages', async () => {
    const { ask, server } = await open({ window: 4000, context, answer: answering })
    const summaries: string[] = []
    for (let i = 0; i < 12; i++) {
      const { result, entries } = await ask(`Question ${i}`)
      expect(result).toMatchObject({ outcome: 'completed' })
      for (const { reason, upTo } of only(entries, 'summarized')) summaries.push(`${reason} ${upTo}`)
      const told = server.requests.at(-1)!
      if (summaries.length > 0) {
        expect(usersIn(told)[0]).toBe('Question 0')
        expect(usersIn(told)[1]).toContain('heron')
        expect(usersIn(told).at(-1)).toBe(`Question ${i}`)
      }
    }
    expect(server.refused).toEqual([])
    const made = summaries.filter((each) => each.startsWith('full'))
    expect(made.length).toBeGreaterThan(1)
    expect(server.requests.filter(isSummary)).toHaveLength(made.length)
    // Each run between starts from the one before.
    expect(summaries.length - made.length).toBeGreaterThan(made.length)
    // No two cover the same, and each is told what the one before had.
    expect(new Set(made).size).toBe(made.length)
    const [, second] = server.requests.filter(isSummary)
    expect(second!.turns[0]!.text).toContain('What was written down so far')
  })

  test('with history: client it is found by what was said, also without tools and ids; other words find none', async () => {
    const { runtime, store, server } = await open({
      window: 4000,
      context,
      top: 'history: client',
      answer: (asked) =>
        asked.turns.at(-1)!.role === 'user' && !isSummary(asked) ? { calls: [{ name: 'read' }] } : answering(asked),
    })
    const messages: { role: 'user' | 'assistant'; content: string }[] = []
    const ask = async (content: string) => {
      messages.push({ role: 'user', content })
      const run = await runtime.start('a', { messages: [...messages] }, { threadId: 't' })
      const result = await run.result
      expect(result).toMatchObject({ outcome: 'completed' })
      messages.push({ role: 'assistant', content: result.text })
      return only(await entriesOf(store, run.id), 'summarized').map(({ reason }) => reason)
    }
    const found: string[][] = []
    for (let i = 0; i < 12; i++) found.push(await ask(`Question ${i}`))
    expect(server.refused).toEqual([])
    const made = found.flat().filter((reason) => reason === 'full')
    expect(server.requests.filter(isSummary)).toHaveLength(made.length)
    const first = found.findIndex((each) => each.length > 0)
    // From the first one on, each run begins with one.
    for (const each of found.slice(first + 1)) expect(each[0]).toBe('earlier')
    messages[1] = { role: 'assistant', content: `${messages[1]!.content} But changed.` }
    expect((await ask('And now?'))[0]).not.toBe('earlier')
  })

  test('a summary that ends within an answer goes on there', async () => {
    const { ask, server } = await open({
      window: 6000,
      context: 'context: { window: 6k, keep: 1k }',
      answer: reading(30),
    })
    const { entries } = await ask('Count the pages.')
    const last = only(entries, 'summarized').at(-1)!
    const calls = server.requests.filter(isSummary).length
    const next = await ask('And now?')
    expect(only(next.entries, 'summarized')).toMatchObject([{ reason: 'earlier', upTo: last.upTo, text: last.text }])
    expect(server.requests.filter(isSummary)).toHaveLength(calls)
    expect(server.refused).toEqual([])
  })

  test('another user of the thread gets none of it', async () => {
    const { runtime, store, server } = await open({ window: 4000, context, top: 'history: client', answer: answering })
    const messages: { role: 'user' | 'assistant'; content: string }[] = []
    const ask = async (user: string) => {
      const asked = [...messages, { role: 'user' as const, content: `Question ${messages.length}` }]
      const run = await runtime.start('a', { messages: asked }, { threadId: 't', user: { id: user } })
      const { text } = await run.result
      if (user === 'ann') messages.push(asked.at(-1)!, { role: 'assistant', content: text })
      return only(await entriesOf(store, run.id), 'summarized').map(({ reason }) => reason)
    }
    let reasons: string[] = []
    while (reasons[0] !== 'earlier') reasons = await ask('ann')
    const before = server.requests.filter(isSummary).length
    expect(await ask('bob')).not.toContain('earlier')
    expect(server.requests.filter(isSummary).length).toBeGreaterThan(before)
  })
})

describe('when it cannot be made', () => {
  test.each<[string, (asked: AskedModel) => StrictAnswer | { status: number; body: Record<string, unknown> }]>([
    ['the model fails', () => ({ status: 500, body: { error: { message: 'down' } } })],
    ['the model says nothing', () => ({ text: ' ' })],
    ['it is longer than what it covers', () => ({ text: 'Too long. '.repeat(20_000) })],
  ])('because %s, the oldest messages are left out, and the run goes on', async (_, summary) => {
    const read = reading(60)
    const { ask, server } = await open({
      window: 9000,
      context: 'context: { window: 9k, keep: 2k }',
      answer: (asked) => (isSummary(asked) ? summary(asked) : read(asked)),
    })
    const { result, entries } = await ask('Count the pages.')
    expect(result).toMatchObject({
      outcome: 'completed',
      text: expect.stringContaining('I was told: Count the pages.'),
    })
    expect(only(entries, 'warning').map(({ code }) => code)).toContain('history-cut')
    const cuts = only(entries, 'summarized')
    expect(cuts.length).toBeGreaterThan(0)
    for (const { text } of cuts) expect(text).toBeUndefined()
    expect(usersIn(server.requests.findLast((asked) => !isSummary(asked))!)).toEqual(['Count the pages.'])
    expect(server.refused.filter(({ why }) => why === 'too long')).toEqual([])
  })

  test('a stop while it is made stops the run', async () => {
    const gate = latch()
    const read = reading(60)
    const { runtime, store } = await open({
      window: 9000,
      context: 'context: { window: 9k, keep: 2k }',
      answer: (asked) => (isSummary(asked) ? { text: ['So far', gate] } : read(asked)),
    })
    const run = await runtime.start('a', { messages: [{ role: 'user', content: 'Count.' }] })
    await gate.reached
    await runtime.stop(run.id)
    expect(await run.result).toMatchObject({ outcome: 'aborted' })
    expect(only(await entriesOf(store, run.id), 'summarized')).toEqual([])
  })
})

describe('what does not fit', () => {
  test('a second refusal fails as context-too-long, with the three largest messages', async () => {
    let count = 0
    const { ask, server } = await open({
      context: 'context: {}',
      // Nothing is short enough for it.
      answer: (asked) =>
        isSummary(asked)
          ? { text: 'Some pages.' }
          : ++count < 8
            ? { calls: [{ name: 'read' }] }
            : { status: 400, body: { error: { type: 'invalid_request_error', message: 'prompt is too long' } } },
    })
    const { result, entries } = await ask('Count the pages.')
    expect(result).toMatchObject({ outcome: 'failed', error: { code: 'context-too-long', status: 400 } })
    expect(result.error!.message).toMatch(
      /The largest messages: (?:message \d+, (?:tool of read|user|assistant) \(about \d+ tokens\),? ?){3}/u,
    )
    expect(server.requests.filter(isSummary)).toHaveLength(1)
    expect(only(entries, 'retry')).toHaveLength(1)
  })

  test('and a first message that fills the window alone says so', async () => {
    const { ask } = await open({ window: 8000, context: 'context: {}' })
    const { result } = await ask('All of this: '.repeat(8000))
    expect(result).toMatchObject({ outcome: 'failed', error: { code: 'context-too-long' } })
    expect(result.error!.message).toMatch(/The largest messages: message 1, user \(about \d+ tokens\)/u)
  })

  test('a window that cannot hold what each prompt has says the three sizes, and nothing is sent', async () => {
    const llm = 'model: "box:m", stream: true, system: $input.rules, context: { window: 2k, keep: 1k }'
    const { runtime, server } = await open({
      options: { agents: { a: `workflow: [{ id: answer, type: llm, config: { ${llm} } }]` } },
    })
    const rules = 'You know all of this. '.repeat(300)
    const run = await runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }], rules })
    const { outcome, error } = await run.result
    expect([outcome, error?.code]).toEqual(['failed', 'context-too-long'])
    expect(error!.message).toMatch(
      /window of 2000 tokens .* system \(about 1\d{3}\), tools \(about 0\) and "keep" \(1000\)/u,
    )
    expect(server.requests).toEqual([])
  })

  test('without context it fails as before', async () => {
    const { ask } = await open({ window: 3000, context: '', answer: reading(30) })
    const { result } = await ask('Count the pages.')
    expect(result).toMatchObject({ outcome: 'failed', error: { code: 'model-refused' } })
  })

  test('an answer that has filled the window without a word is asked for once more', async () => {
    let asks = 0
    const { ask } = await open({
      context: 'context: {}',
      answer(asked) {
        if (isSummary(asked)) return { text: 'Two pages were read.' }
        asks++
        if (asks < 5) return { calls: [{ name: 'read' }] }
        return asks === 5 ? { finish: 'model_context_window_exceeded' } : { text: 'Done.' }
      },
    })
    const { result, entries } = await ask('Count the pages.')
    expect(result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect(only(entries, 'summarized')).toMatchObject([{ reason: 'overflow' }])
    expect(only(entries, 'retry')).toHaveLength(1)
  })

  test('a server that counts much less than it was sent has left something out: a warning, once', async () => {
    const { ask } = await open({
      protocol: 'openai-chat',
      context: 'context: { window: 200k }',
      answer: (asked) =>
        callsIn(asked) < 30 ? { calls: [{ name: 'read' }], reports: 400 } : { text: 'ok', reports: 400 },
    })
    const { entries } = await ask('Count the pages.')
    const warnings = only(entries, 'warning').filter(({ code }) => code === 'context-truncated')
    expect(warnings).toHaveLength(1)
    expect(warnings[0]!.message).toContain('400 tokens')
  })

  test.each([
    [0.35, 1],
    [0.7, 0],
  ])('a report of %s of a prompt makes %i warnings', async (share, count) => {
    const { ask } = await open({
      answer: (asked) => ({
        ...(callsIn(asked) < 30 ? { calls: [{ name: 'read' }] } : { text: 'ok' }),
        reports: Math.round(asked.tokens * share),
      }),
    })
    const { entries } = await ask('Count the pages.')
    expect(only(entries, 'warning').filter(({ code }) => code === 'context-truncated')).toHaveLength(count)
  })
})

test('a summary is stored before its model goes on: a server that dies then does not make it again', async () => {
  let isMade = false
  let isStored = false
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      async append(run, epoch, given, view) {
        const entries = taken(given)
        const hasSummary = entries.some(({ type }) => type === 'summarized')
        // As a store that is slow: the next call has the time to begin.
        for (let i = 0; hasSummary && i < 200; i++) await setImmediate()
        const appended = await store.log.append(run, epoch, entries, view)
        isStored ||= hasSummary
        return appended
      },
    },
  })
  const storedBefore: boolean[] = []
  const { ask } = await open({
    window: 6000,
    context: 'context: { window: 6k, keep: 1k }',
    options: { wrapStore },
    answer(asked) {
      if (isSummary(asked)) {
        isMade = true
        return { text: 'Pages were read.' }
      }
      if (isMade) storedBefore.push(isStored)
      return isMade ? { text: 'ok' } : { calls: [{ name: 'read' }] }
    },
  })
  await ask('Count the pages.')
  expect(storedBefore).toEqual([true])
})

describe('old results', () => {
  const long = (n: number) => `Result ${n}: ${'a long line of it, '.repeat(400)}`

  test('become handles first, all at once; while that is enough, no summary is made', async () => {
    let count = 0
    const { ask, server } = await open({
      window: 32_000,
      context: 'context: { window: 32k, keep: 4k }',
      options: { tools: { read: { parameters: z.looseObject({}), execute: () => long(++count) } } },
      answer: (asked) =>
        isSummary(asked) ? { text: 'Some.' } : callsIn(asked) < 14 ? { calls: [{ name: 'read' }] } : { text: 'ok' },
    })
    const { result, entries } = await ask('Read all.')
    expect(result).toMatchObject({ outcome: 'completed' })
    expect(server.refused).toEqual([])
    expect(only(entries, 'summarized')).toEqual([])
    const shortened = only(entries, 'prompt').filter((prompt) => prompt.shortened !== undefined)
    expect(shortened).toHaveLength(1)
    expect(shortened[0]!.shortened!.length).toBeGreaterThan(8)
    // Until then the beginning of the prompt stays as it was, and from then on again.
    const at = server.requests.findIndex(({ body }) => JSON.stringify(body).includes('It is kept as res_'))
    const told = server.requests.map(({ turns }) => turns.flatMap(({ results }) => results.map(({ text }) => text)))
    for (let i = 1; i < told.length; i++) {
      if (i !== at) expect(told[i]!.slice(0, told[i - 1]!.length)).toEqual(told[i - 1])
    }
    expect(told[at]![0]).not.toBe(told[at - 1]![0])
    // The tool that reads them is there from then on.
    expect(server.requests[at - 1]!.tools).not.toContain('readResult')
    expect(server.requests[at]!.tools).toContain('readResult')
  })

  test('within one round that is larger than keep, too', async () => {
    let count = 0
    const { ask, server } = await open({
      window: 20_000,
      context: 'context: { window: 20k, keep: 4k }',
      options: { tools: { read: { parameters: z.looseObject({}), execute: () => long(++count) } } },
      answer: (asked) =>
        callsIn(asked) === 0 ? { calls: Array.from({ length: 12 }, () => ({ name: 'read' })) } : { text: 'ok' },
    })
    const { result } = await ask('Read all at once.')
    expect(result).toMatchObject({ outcome: 'completed' })
    expect(server.refused).toEqual([])
    const results = server.requests[1]!.turns.flatMap(({ results }) => results)
    expect(results).toHaveLength(12)
    expect(results[0]!.text).toContain('It is kept as res_')
    expect(results.at(-1)!.text).toBe(long(12))
  })
})

describe('in a fork, a restart, a router', () => {
  test('a fork before the entry is free of it, one behind it has it', async () => {
    const { ask, runtime, store, server } = await open({
      window: 9000,
      context: 'context: { window: 9k, keep: 2k }',
      answer: reading(40),
    })
    const { id, entries } = await ask('Count the pages.')
    const [first] = only(entries, 'summarized')
    const before = await runtime.fork(id, {
      at: entries.findLast(({ type, seq }) => type === 'step-finish' && seq < first!.seq - 20)!.seq,
    })
    await before.result
    expect(only(await entriesOf(store, before.id), 'summarized').every(({ seq }) => seq > first!.seq - 20)).toBe(true)
    const asked = server.requests.length
    const behind = await runtime.fork(id, { at: first!.seq })
    await behind.result
    expect(usersIn(server.requests[asked]!)[1]).toContain('heron')
  })

  test('the whole prompt of a call is what it was told, also of one that was refused first', async () => {
    const { ask, store, server } = await open({ window: 6000, context: 'context: {}', answer: reading(30) })
    const { id, entries } = await ask('Count the pages.')
    const calls = only(entries, 'step-start').filter(
      ({ step, stepType }) => stepType === 'model-call' && step.split('/').length === 3,
    )
    const told = server.requests.filter((asked) => !isSummary(asked))
    for (const [i, { step }] of calls.entries()) {
      const { messages } = (await readPrompt(store.log, id, step))!
      const users = messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []))
      expect(users, step).toEqual(usersIn(told[i]!))
      const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []))
      expect(results.length, step).toBe(told[i]!.turns.flatMap((turn) => turn.results).length)
    }
  })

  test('a router has it, too', async () => {
    const read = reading(60)
    const { runtime, store, server } = await open({
      options: {
        agents: {
          a: `workflow:
  - { id: find, type: router, config: { model: "box:m", maxSteps: 100, retries: 0, tools: [read], context: { window: 9k, keep: 2k } } }
  - { id: answer, type: llm, config: { model: "box:m", stream: true } }`,
        },
      },
      window: 9000,
      answer: (asked) => (asked.tools.length === 0 && !isSummary(asked) ? { text: 'Done.' } : read(asked)),
    })
    const run = await runtime.start('a', { messages: [{ role: 'user', content: 'Count.' }] })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    const made = only(await entriesOf(store, run.id), 'summarized')
    expect(made.length).toBeGreaterThan(0)
    expect(made[0]!.step).toBe('main/find')
    expect(server.refused).toEqual([])
  })
})

test('a summary counts for budgets, costs and the view of the run; the answer has none of it', async () => {
  const { ask, store } = await open({
    window: 9000,
    context:
      'context: { window: 9k, keep: 2k, summary: { model: "box:small", system: "You shorten. Only the code word." } }',
    answer: reading(40),
    options: { pricing: { 'box:m': { input: 1, output: 1 }, 'box:small': { input: 1, output: 1 } } },
  })
  const { id, result, entries } = await ask('Count the pages.')
  expect(result.text).not.toContain('heron')
  const view = (await readView(store, id))!
  expect(view.usageByModel.map(({ model }) => model).toSorted()).toEqual(['box:m', 'box:small'])
  expect(view.summaries).toMatchObject([
    { step: 'main/answer', reason: 'full', text: expect.stringContaining('heron') },
  ])
  const [end] = only(entries, 'run-end')
  const spent = only(entries, 'usage').reduce((sum, { usage }) => sum + (usage.totalTokens ?? 0), 0)
  expect(end!.usage.totalTokens).toBe(spent)
})

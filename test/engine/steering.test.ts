/** Messages into a running turn: where the model is told them, what becomes of those that come too late, and that each counts once. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Store } from '../../src/part/log.ts'
import { finish, latch, text, toolCall, type Latch } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, openEngine, taken, until, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { toldWords, watchInbox } from '../support/steering.ts'

const hello = { messages: [{ role: 'user', id: 'u1', content: 'Hi' }] }

/** Calls a tool that waits, then answers. */
function looking({ tool = latch(), words = latch(), config = 'tools: [look]', ...options }: Looking = {}) {
  const m = createTold((prompt) =>
    resultsIn(prompt).size === 0
      ? [text('I look. '), toolCall('c', 'look'), finish('tool-calls')]
      : [text('Found. '), words, text('Done.'), finish()],
  )
  const inbox = watchInbox()
  const look = {
    parameters: z.looseObject({}),
    async execute() {
      tool.arrive()
      await tool.opened
      return 'seen'
    },
  }
  const engine = openEngine({
    agents: { a: agent(config) },
    tools: { look },
    scripts: { m },
    wrapStore: inbox.wrapStore,
    ...options,
  })
  return { ...engine, m, tool, words, inbox }
}

interface Looking extends Partial<EngineOptions> {
  tool?: Latch
  words?: Latch
  config?: string
}

const opened = () => {
  const gate = latch()
  gate.open()
  return gate
}

describe('a message into a running turn', () => {
  test('in a tool round it stands behind all results of the round, as a plain user message', async () => {
    const { runtime, store, m, tool, inbox } = looking({ words: opened() })
    const run = await runtime.start('a', hello, { threadId: 't' })
    await tool.reached
    expect(await runtime.tell(run.id, { id: 'm1', content: 'Shorter, please' })).toEqual({
      id: 'm1',
      mode: 'steer',
      duplicate: false,
    })
    expect(await runtime.waiting(run.id)).toMatchObject([{ id: 'm1', mode: 'steer', content: 'Shorter, please' }])
    await inbox.heard('m1')
    tool.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'I look. Found. Done.' })
    expect(m.prompts.map(toldWords).at(-1)).toEqual([
      'user: Hi',
      'assistant: I look. look',
      'tool: look',
      'user: Shorter, please',
    ])
    const entries = await entriesOf(store, run.id)
    const [message] = only(entries, 'message')
    expect(message).toMatchObject({ id: 'm1', step: 'main/answer', content: 'Shorter, please', protocol: 'library' })
    expect(message!.timestamp).toBeGreaterThanOrEqual(message!.sentAt)
    expect(await runtime.waiting(run.id)).toEqual([])
    // The conversation has it, where the model was told it.
    const next = await runtime.start(
      'a',
      { messages: [{ role: 'user', content: 'And?' }] },
      { threadId: 't', history: 'server' },
    )
    await next.result
    expect(toldWords(m.prompts.at(-1)!).slice(0, 6)).toEqual([
      'user: Hi',
      'assistant: I look. look',
      'tool: look',
      'user: Shorter, please',
      'assistant: Found. Done.',
      'user: And?',
    ])
  })

  test('during the last words of the answer: they stay, and the model is called once more', async () => {
    const { runtime, m, words, inbox } = looking({ tool: opened() })
    const run = await runtime.start('a', hello)
    await words.reached
    await runtime.tell(run.id, { id: 'm1', content: 'And the other?' })
    await inbox.heard('m1')
    words.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'I look. Found. Done.Found. Done.' })
    expect(toldWords(m.prompts.at(-1)!).slice(-2)).toEqual(['assistant: Found. Done.', 'user: And the other?'])
  })

  test.each([
    ['maxSteps are used up', 'tools: [look]\nmaxSteps: 2', ''],
    ['the budget of steps is used up', 'tools: [look]', 'budget: { steps: 3 }\n'],
  ])('if %s, it is the first message of the next run, which starts at once', async (_, config, top) => {
    const { runtime, store, m, words, inbox } = looking({
      tool: opened(),
      agents: { a: agent(config, top) },
    })
    const run = await runtime.start('a', hello, { threadId: 't' })
    await words.reached
    await runtime.tell(run.id, { id: 'm1', content: 'And the other?' })
    await inbox.heard('m1')
    words.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'I look. Found. Done.' })
    const [message] = only(await entriesOf(store, run.id), 'message')
    expect(message).toMatchObject({ id: 'm1', outcome: 'next' })
    const next = (await runtime.open(message!.runId!))!
    expect(await next.result).toMatchObject({ outcome: 'completed', text: 'Found. Done.' })
    expect(next.threadId).toBe('t')
    expect(toldWords(m.prompts.at(-1)!)).toEqual([
      'user: Hi',
      'assistant: I look. look',
      'tool: look',
      'assistant: Found. Done.',
      'user: And the other?',
    ])
    expect(await store.runs.list({ threadId: 't' })).toHaveLength(2)
  })

  test('an answer that is JSON ends with its JSON: the message begins the next run', async () => {
    const gate = latch()
    const m = createTold(() => [text('{"n":'), gate, text('1}'), finish()])
    const inbox = watchInbox()
    const { runtime, store } = openEngine({
      agents: { a: agent('output: { schema: { type: object, properties: { n: { type: integer } } } }') },
      scripts: { m },
      wrapStore: inbox.wrapStore,
    })
    const run = await runtime.start('a', hello)
    await gate.reached
    await runtime.tell(run.id, { id: 'm1', content: 'More' })
    await inbox.heard('m1')
    gate.open()
    expect((await run.result).outcome).toBe('completed')
    expect(only(await entriesOf(store, run.id), 'message')).toMatchObject([{ outcome: 'next' }])
  })

  test('mode queue: each gets a run of its own after this one, in order, behind what came for the turn', async () => {
    const { runtime, store, m, words, inbox } = looking({ tool: opened(), config: 'tools: [look]\nmaxSteps: 2' })
    const run = await runtime.start('a', hello, { threadId: 't' })
    await words.reached
    expect((await runtime.tell(run.id, { id: 'q1', content: 'First', mode: 'queue' })).mode).toBe('queue')
    await runtime.tell(run.id, { id: 'q2', content: 'Second', mode: 'queue' })
    await runtime.tell(run.id, { id: 's1', content: 'Now' })
    await runtime.tell(run.id, { id: 's2', content: 'and this' })
    await inbox.heard('q1', 'q2', 's1', 's2')
    words.open()
    await run.result
    const next = only(await entriesOf(store, run.id), 'message')
    expect(next.map(({ id, outcome }) => [id, outcome])).toEqual([
      ['s1', 'next'],
      ['s2', 'next'],
      ['q1', 'next'],
      ['q2', 'next'],
    ])
    const runs = [...new Set(next.map(({ runId }) => runId!))]
    expect(runs).toHaveLength(3)
    for (const id of runs) await (await runtime.open(id))!.result
    expect(toldWords(m.prompts.at(-1)!).filter((words) => words.startsWith('user'))).toEqual(
      ['Hi', 'Now', 'and this', 'First', 'Second'].map((each) => `user: ${each}`),
    )
  })

  test('one that is taken back is never told; a delivered one is a conflict', async () => {
    const { runtime, store, m, tool, words, inbox } = looking()
    const run = await runtime.start('a', hello)
    await tool.reached
    await runtime.tell(run.id, { id: 'm1', content: 'One' })
    await runtime.tell(run.id, { id: 'm2', content: 'Two' })
    await runtime.takeBack(run.id, 'm1')
    await runtime.takeBack(run.id, 'm1')
    expect(await runtime.waiting(run.id)).toMatchObject([{ id: 'm2' }])
    await inbox.heard('m2')
    tool.open()
    await words.reached
    await expect(runtime.takeBack(run.id, 'm2')).rejects.toMatchObject({ code: 'message-delivered', status: 409 })
    await expect(runtime.takeBack(run.id, 'm3')).rejects.toMatchObject({ code: 'unknown-message', status: 404 })
    words.open()
    await run.result
    expect(toldWords(m.prompts.at(-1)!).at(-1)).toBe('user: Two')
    expect(only(await entriesOf(store, run.id), 'message').map(({ id, outcome }) => [id, outcome])).toEqual([
      ['m1', 'withdrawn'],
      ['m2', undefined],
    ])
  })

  test('one that is taken back before its owner has read that is not told', async () => {
    const withoutClaims = (store: Store): Store => ({
      ...store,
      log: {
        ...store.log,
        async *inbox(run, options) {
          for await (const each of store.log.inbox(run, options)) {
            if (options?.signal === undefined || !each.key.startsWith('settle:')) yield each
          }
        },
      },
    })
    const inbox = watchInbox()
    const { runtime, store, m, tool } = looking({
      words: opened(),
      wrapStore: (stored) => inbox.wrapStore(withoutClaims(stored)),
    })
    const run = await runtime.start('a', hello)
    await tool.reached
    await runtime.tell(run.id, { id: 'm1', content: 'One' })
    await inbox.heard('m1')
    await runtime.takeBack(run.id, 'm1')
    tool.open()
    expect((await run.result).outcome).toBe('completed')
    expect(toldWords(m.prompts.at(-1)!).at(-1)).toBe('tool: look')
    expect(only(await entriesOf(store, run.id), 'message')).toMatchObject([{ id: 'm1', outcome: 'withdrawn' }])
  })

  test('a stop drops what was not delivered, and says so', async () => {
    const { runtime, store, tool, inbox } = looking()
    const run = await runtime.start('a', hello, { threadId: 't' })
    await tool.reached
    await runtime.tell(run.id, { id: 'm1', content: 'One' })
    await inbox.heard('m1')
    await run.stop()
    tool.open()
    expect((await run.result).outcome).toBe('aborted')
    expect(only(await entriesOf(store, run.id), 'message')).toMatchObject([{ id: 'm1', outcome: 'dropped' }])
    expect(await runtime.waiting(run.id)).toEqual([])
    expect(await store.runs.list({ threadId: 't' })).toHaveLength(1)
    await expect(runtime.tell(run.id, { content: 'Two' })).rejects.toMatchObject({ code: 'run-ended', status: 409 })
    await expect(runtime.tell(run.id, { content: 'Two' })).rejects.toThrow('Send the message to its thread: t.')
  })

  test('while the run waits for an approval it waits, too, and answers nothing; a stop drops it', async () => {
    const config = 'tools: [{ name: look, approval: true }]'
    const { runtime, store, m } = looking({ tool: opened(), words: opened(), config })
    const run = await runtime.start('a', hello)
    expect((await run.result).outcome).toBe('suspended')
    await runtime.tell(run.id, { id: 'm1', content: 'Be quick' })
    expect((await store.runs.get(run.id))!.status).toBe('suspended')
    expect(await runtime.waiting(run.id)).toHaveLength(1)
    const [request] = only(await entriesOf(store, run.id), 'request')
    await runtime.answer(run.id, request!.requestId, { kind: 'approval', approved: true })
    const again = (await runtime.open(run.id))!
    expect((await again.result).outcome).toBe('completed')
    expect(toldWords(m.prompts.at(-1)!).at(-1)).toBe('user: Be quick')

    const other = await runtime.start('a', hello)
    await other.result
    await runtime.tell(other.id, { id: 'm1', content: 'Be quick' })
    await other.stop()
    await until(store, other.id, ({ type }) => type === 'run-end')
    expect(only(await entriesOf(store, other.id), 'message')).toMatchObject([{ outcome: 'dropped' }])
  })

  test('a run that goes on after an approval has it once: its inbox is read again', async () => {
    const m = createTold((prompt) => {
      const { size } = resultsIn(prompt)
      return size < 2
        ? [toolCall(`c${size}`, size === 0 ? 'look' : 'pay'), finish('tool-calls')]
        : [text('Done.'), finish()]
    })
    const tools = { pay: { parameters: z.looseObject({}), execute: () => 'paid' } }
    const config = 'tools: [look, { name: pay, approval: true }]'
    const tool = latch()
    const inbox = watchInbox()
    const look = {
      parameters: z.looseObject({}),
      async execute() {
        tool.arrive()
        await tool.opened
        return 'seen'
      },
    }
    const { runtime, store } = openEngine({
      agents: { a: agent(config) },
      tools: { ...tools, look },
      scripts: { m },
      wrapStore: inbox.wrapStore,
    })
    const run = await runtime.start('a', hello)
    await tool.reached
    await runtime.tell(run.id, { id: 'm1', content: 'Be quick' })
    await inbox.heard('m1')
    tool.open()
    expect((await run.result).outcome).toBe('suspended')
    const [request] = only(await entriesOf(store, run.id), 'request')
    await runtime.answer(run.id, request!.requestId, { kind: 'approval', approved: true })
    expect((await (await runtime.open(run.id))!.result).outcome).toBe('completed')
    expect(toldWords(m.prompts.at(-1)!).filter((words) => words.startsWith('user'))).toEqual([
      'user: Hi',
      'user: Be quick',
    ])
    expect(only(await entriesOf(store, run.id), 'message')).toHaveLength(1)
  })

  test('the same id is the same message, however often it is sent, also when it was delivered', async () => {
    const { runtime, store, tool, inbox } = looking({ words: opened() })
    const run = await runtime.start('a', hello)
    await tool.reached
    const sent = await Promise.all(Array.from({ length: 5 }, () => runtime.tell(run.id, { id: 'm1', content: 'One' })))
    expect(sent.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    await inbox.heard('m1')
    tool.open()
    await run.result
    expect(await runtime.tell(run.id, { id: 'm1', content: 'One' })).toMatchObject({ duplicate: true })
    expect(only(await entriesOf(store, run.id), 'message')).toHaveLength(1)
  })

  test('20 wait for one run, and one has at most 32 KB', async () => {
    const { runtime, tool, words } = looking({ words: opened() })
    const run = await runtime.start('a', hello)
    await tool.reached
    for (let i = 0; i < 20; i++) await runtime.tell(run.id, { content: `${i}` })
    await expect(runtime.tell(run.id, { content: 'x' })).rejects.toMatchObject({
      code: 'too-many-messages',
      status: 429,
    })
    await expect(runtime.tell(run.id, { content: 'é'.repeat(16_384) })).rejects.toMatchObject({
      code: 'too-large',
      status: 413,
    })
    await expect(runtime.tell('run_x', { content: 'x' })).rejects.toMatchObject({ code: 'unknown-run' })
    words.open()
    tool.open()
    await run.result
  })

  test('an agent without a step that can take it queues it, and says so; a called agent gets none', async () => {
    const gate = latch()
    const m = createTold(() => [text('x'), gate, finish()])
    const inner = agent()
    const outer = 'workflow: [{ id: call, type: call-agent, config: { agent: inner } }]'
    const { runtime, store } = openEngine({ agents: { outer, inner }, scripts: { m } })
    const run = await runtime.start('outer', hello)
    await gate.reached
    expect(await runtime.tell(run.id, { id: 'm1', content: 'One' })).toMatchObject({ mode: 'queue' })
    gate.open()
    await run.result
    const [message] = only(await entriesOf(store, run.id), 'message')
    expect(message).toMatchObject({ outcome: 'next' })
    await (await runtime.open(message!.runId!))!.result
    expect(toldWords(m.prompts[0]!)).toEqual(['user: Hi'])
    expect(toldWords(m.prompts[1]!).at(-1)).toBe('user: One')
  })

  test('before the first model call it stands behind the messages of the request', async () => {
    const gate = latch()
    const m = createTold(() => [text('x'), finish()])
    const first = createTold(() => [text('fact'), gate, finish()])
    const inbox = watchInbox()
    const a = `workflow:
  - { id: facts, type: llm, config: { model: "script:first" } }
  - { id: answer, type: llm, config: { model: "script:m", stream: true } }`
    const { runtime, store } = openEngine({ agents: { a }, scripts: { m, first }, wrapStore: inbox.wrapStore })
    const run = await runtime.start('a', hello)
    await gate.reached
    await runtime.tell(run.id, { id: 'm1', content: 'One' })
    await inbox.heard('m1')
    gate.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'x' })
    expect(m.prompts.map(toldWords)).toEqual([['user: Hi', 'user: One']])
    const { readPrompt } = await import('../../src/fold/whole-prompt.ts')
    const prompt = await readPrompt(store.log, run.id, 'main/answer/1')
    expect(toldWords(prompt!.messages)).toEqual(['user: Hi', 'user: One'])
  })

  test('a fork before it is free of it; a fork behind it has it', async () => {
    const { runtime, store, m, tool, inbox } = looking({ words: opened() })
    const run = await runtime.start('a', hello)
    await tool.reached
    await runtime.tell(run.id, { id: 'm1', content: 'One' })
    await inbox.heard('m1')
    tool.open()
    await run.result
    const { seq } = only(await entriesOf(store, run.id), 'message')[0]!
    for (const [at, last] of [
      [seq - 1, 'tool: look'],
      [seq, 'user: One'],
      [seq + 2, 'user: One'],
    ] as const) {
      const fork = await runtime.fork(run.id, { at })
      expect((await fork.result).outcome).toBe('completed')
      expect(toldWords(m.prompts.at(-1)!).at(-1)).toBe(last)
      await entriesOf(store, fork.id)
    }
  })
})

describe('the run that begins with a message', () => {
  test('starts where only one run of the agent may be active: when the run before has ended', async () => {
    const { runtime, store, words, inbox } = looking({
      tool: opened(),
      agents: { a: agent('tools: [look]\nmaxSteps: 2', 'limits: { activeRuns: 1 }\n') },
    })
    const run = await runtime.start('a', hello, { threadId: 't' })
    await words.reached
    await runtime.tell(run.id, { id: 'm1', content: 'And the other?' })
    await inbox.heard('m1')
    words.open()
    await run.result
    const [message] = only(await entriesOf(store, run.id), 'message')
    await expect.poll(async () => (await store.runs.get(message!.runId!))?.status).toBe('completed')
  })

  test('on a shared store the owner begins it, if the process that posted it while the end was written is gone', async () => {
    const late = { mode: 'steer', content: 'Late', protocol: 'api', sentAt: 1 }
    let isPosted = false
    const shared = (store: Store): Store => ({
      ...store,
      fleet: { ...store.fleet, shared: true },
      log: {
        ...store.log,
        async append(run, epoch, given, view) {
          const entries = taken(given)
          if (!isPosted && entries.some(({ type }) => type === 'run-end')) {
            isPosted = true
            await store.log.post(run, 'message:m9', late)
          }
          return store.log.append(run, epoch, entries, view)
        },
      },
    })
    const { runtime, store } = looking({ tool: opened(), words: opened(), wrapStore: shared })
    const run = await runtime.start('a', hello, { threadId: 't' })
    await run.result
    const titles = async () =>
      (await store.runs.list({ threadId: 't' })).map(({ title, status }) => `${title} ${status}`)
    await expect.poll(titles).toEqual(['Late completed', 'Hi completed'])
  })

  test('one that nobody saw begins it, once, whoever looks; also at the next start', async () => {
    const { runtime, store, dir, words } = looking({ tool: opened(), words: opened(), keep: true })
    void words
    const run = await runtime.start('a', hello, { threadId: 't' })
    await run.result
    // Posted while the end was written, by a process that died then.
    const posted = { mode: 'steer', content: 'Late', protocol: 'api', sentAt: 1 }
    await store.log.post(run.id, 'message:m9', posted)
    await runtime.close(0)
    const again = looking({ tool: opened(), words: opened(), dir })
    await Promise.all([again.runtime.recover(), again.runtime.recover()])
    const titles = async () =>
      (await again.store.runs.list({ threadId: 't' })).map(({ title, status }) => `${title} ${status}`)
    await expect.poll(titles).toEqual(['Late completed', 'Hi completed'])
    expect(toldWords(again.m.prompts.at(-1)!).at(0)).toBe('user: Hi')
  })
})

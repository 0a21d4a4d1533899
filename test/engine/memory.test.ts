/** `memory`: what earlier runs of a thread hold, picked for this one; facts kept for the next ones; all of it in the log. */
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/store/memory-store.ts'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { uiWire } from '../../src/wire/ui/ui.ts'
import { entriesOf, only, type EngineOptions, openEngine } from '../support/engine.ts'
import { createTold, cutAfter, plant } from '../support/going-on.ts'
import { placesOf } from '../support/thorough.ts'
import { agent, readSaid, said, start, user } from './memory-turns.ts'

/** Says `<what the user said> indeed.` */
const echo = () =>
  createTold((prompt) => {
    const said = prompt.findLast(({ role }) => role === 'user')!.content as { text: string }[]
    return [text(`${said[0]!.text} indeed.`), finish()]
  })

describe.each<[string, Partial<EngineOptions>]>([
  ['sqlite', {}],
  ['memory', { wrapStore: () => memoryStore() }],
])('with the %s store', (_, options) => {
  test('what was stored and said before comes back where it fits, and the model is told', async () => {
    const model = echo()
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: model }, ...options })
    const outputs = await said(engine, 't', 'My boat is called Ada', 'I like mills.', 'What is my boat called?')
    expect(outputs[0]!.recalled).toEqual({ facts: [], turns: [], text: '' })
    expect(outputs.map(({ stored }) => stored)).toEqual([
      ['My boat is called Ada'],
      ['I like mills.'],
      ['What is my boat called?'],
    ])
    const { recalled } = outputs[2]!
    expect(recalled.facts).toEqual(['My boat is called Ada', 'I like mills.'])
    expect(recalled.turns).toEqual([
      {
        runId: outputs[0]!.id,
        at: expect.any(Number),
        user: 'My boat is called Ada',
        assistant: 'My boat is called Ada indeed.',
      },
    ])
    expect(recalled.text).toBe(
      'Known from earlier:\n- My boat is called Ada\n- I like mills.\n\n' +
        'Said earlier in this conversation:\n- User: My boat is called Ada\n  Assistant: My boat is called Ada indeed.',
    )
    expect(model.prompts[2]![0]).toMatchObject({ role: 'system', content: recalled.text })
  })

  test('another thread, and a run without one, have nothing of it', async () => {
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: echo() }, ...options })
    await said(engine, 't', 'My boat is called Ada')
    const nothing = { facts: [], turns: [], text: '' }
    expect((await said(engine, 'u', 'What is my boat called?'))[0]!.recalled).toEqual(nothing)
    expect((await said(engine, undefined, 'My boat?', 'My boat?')).map(({ recalled }) => recalled)).toEqual([
      nothing,
      nothing,
    ])
  })
})

test('what the request’s messages hold is not recalled', async () => {
  const engine = openEngine({ agents: { a: agent() }, scripts: { m: echo() } })
  const [first] = await said(engine, 't', 'My boat is called Ada')
  const answer = { role: 'assistant', content: 'My boat is called Ada indeed.' }
  const again = user('What is my boat called?')
  const [both, byId, one] = await said(
    engine,
    't',
    [user('my boat is  called Ada.'), answer, again],
    [{ ...answer, content: 'What it shows', id: first!.id } as never, user('And my boat?')],
    [user('My boat is called Ada'), user('My boat?')],
  )
  expect(both!.recalled).toEqual({ facts: [], turns: [], text: '' })
  expect(byId!.recalled.turns.map(({ user: side }) => side)).toEqual(['What is my boat called?'])
  // Its answer is not in the messages: the turn is news.
  expect(one!.recalled.turns.map(({ runId }) => runId)).toContain(first!.id)
  expect(one!.recalled.facts).not.toContain('My boat is called Ada')
})

test('facts are kept once, whatever their case and spaces; lists, values and nothing', async () => {
  const engine = openEngine({ agents: { a: agent('', ', facts: "$input.facts?"') }, scripts: { m: echo() } })
  const stored: unknown[] = []
  for (const facts of [
    ['Likes tea', ' likes  TEA. ', 'Owns a boat'],
    'Owns a boat!',
    ['Lives in Ulm', { age: 7 }, null, '', ' '],
    undefined,
    ['x'.repeat(2000), ...Array.from({ length: 80 }, (_, i) => `fact ${i}`)],
  ]) {
    stored.push((await start(engine, { messages: [user('Hi')], facts }, 't')).stored)
  }
  expect(stored.slice(0, 4)).toEqual([['Likes tea', 'Owns a boat'], [], ['Lives in Ulm', '{"age":7}'], []])
  const many = stored[4] as string[]
  expect([many.length, many[0]!.length]).toEqual([50, 1001])
})

test('`query`, `limit` and `runs`: what is looked for, how much comes back, how far back', async () => {
  const engine = openEngine({
    agents: { a: agent(', query: "$input.about?", limit: 2, runs: 3') },
    scripts: { m: echo() },
  })
  const outputs = await said(engine, 't', 'red boat', 'red mill', 'red tower', 'green boat', 'a red thing')
  expect(outputs[4]!.recalled.turns.map(({ user: side }) => side)).toEqual(['red tower', 'red mill'])
  expect(outputs[4]!.recalled.facts).toEqual(['red tower', 'red mill'])
  const { recalled } = await start(engine, { messages: [user('red')], about: 'boat' }, 't')
  expect(recalled.turns.map(({ user: side }) => side)).toEqual(['green boat'])
  expect(recalled.facts).toEqual(['green boat', 'a red thing'])
})

test('what a run said that has failed, or was stopped, is recalled as far as it came', async () => {
  const model = createScriptedModel([
    [text('My boat is'), { fault: 'drop', error: new Error('gone') }],
    [text('.'), finish()],
  ])
  const engine = openEngine({ agents: { a: agent() }, scripts: { m: model } })
  const run = await engine.runtime.start('a', { messages: [user('boat?')] }, { threadId: 't' })
  expect(await run.result).toMatchObject({ outcome: 'failed' })
  const [next] = await said(engine, 't', 'boat again')
  expect(next!.recalled.turns).toMatchObject([{ user: 'boat?', assistant: 'My boat is' }])
})

test('a run that waits in the thread behind this one is not an earlier one', async () => {
  const engine = openEngine({ agents: { a: `onBusy: queue\n${agent()}` }, scripts: { m: echo() } })
  const seen = await Promise.all(
    ['boat one', 'boat two', 'boat three'].map((each) => start(engine, { messages: [user(each)] }, 't')),
  )
  expect(seen.map(({ recalled }) => recalled.turns.length).toSorted((a, b) => a - b)).toEqual([0, 1, 2])
})

test('no more of a thread is read than has its bound: the newest, whole', async () => {
  const engine = openEngine({
    agents: { a: agent() },
    scripts: { m: createTold(() => [text('boat '.repeat(500_000)), finish()]) },
  })
  const outputs = await said(engine, 't', 'boat one', 'boat two', 'boat three')
  expect(outputs[1]!.recalled.turns.map(({ user: side }) => side)).toEqual(['boat one'])
  expect(outputs[2]!.recalled.turns.map(({ user: side }) => side)).toEqual(['boat two'])
  expect(outputs[2]!.recalled.turns[0]!.assistant).toHaveLength(2001)
  expect(outputs[2]!.recalled.text.length).toBeLessThan(2000)
})

test('it runs beside other steps; no wire for clients tells of it', async () => {
  const engine = openEngine({
    agents: {
      a: `
workflow:
  - id: turn
    type: parallel
    result: turn
    config:
      branches:
        recall: [{ id: recall, type: memory, config: { action: recall } }]
        keep: [{ id: keep, type: memory, config: { action: store } }]
        plan: [{ id: plan, type: llm, config: { model: "script:m" } }]
  - { id: answer, type: llm, config: { model: "script:m", stream: true, system: "Known: $turn.recall.text" } }
return: "$turn.recall"
`,
    },
    scripts: { m: echo() },
  })
  const outputs = await said(engine, 't', 'My boat is called Ada', 'My boat?')
  expect(outputs[1]!.recalled.facts).toEqual(['My boat is called Ada'])
  const entries = await entriesOf(engine.store, outputs[1]!.id)
  const encoder = uiWire.createEncoder()
  const frames = entries.map((entry) => encoder.encode(entry)).join('')
  expect(frames).not.toContain('Ada')
  expect(only(entries, 'data')).toEqual([])
})

test('a crash behind any entry: facts are kept once, and what was recalled stays what it was', async () => {
  const options = { agents: { a: `recover: true\n${agent()}` }, scripts: { m: echo() } }
  const first = openEngine(options)
  const outputs = await said(first, 't', 'My boat is called Ada', 'What is my boat called?')
  const [earlier, whole] = await Promise.all(outputs.map(({ id }) => entriesOf(first.store, id)))
  for (const k of placesOf(whole!.length - 1)) {
    if (k < 2) continue
    const engine = await cutAfter(earlier!, earlier!.length, options)
    try {
      await plant(engine.dir, whole!.slice(0, k))
      await engine.runtime.recover()
      await (await engine.runtime.open(outputs[1]!.id))!.result
      expect(await readSaid(engine, outputs[1]!.id), `cut after ${k}`).toEqual(outputs[1])
    } finally {
      await engine.close()
    }
  }
})

/** A fork shares the log of a run up to an entry and goes on by itself: at every entry, of every kind of run. */
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Entry } from '../../src/part/entry.ts'
import { importNdjson } from '../../src/record/transfer/import.ts'
import type { ForkOptions } from '../../src/runtime/runtime.ts'
import { z } from 'zod'
import { agent, createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { placesOf } from '../support/thorough.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

const messages = [{ role: 'user', content: 'Hi' }]
const say = (...words: string[]) => [text(...words), finish()]

async function recorded(options: EngineOptions, input: Record<string, unknown> = { messages, tone: 'Be brief.' }) {
  engine = createEngine(options)
  const { runtime, store } = engine
  const run = await runtime.start('a', input)
  await run.result
  const entries = await entriesOf(store, run.id)
  const seqOf = (matches: (entry: Entry) => boolean) => entries.find(matches)!.seq
  const fork = async (options: ForkOptions) => {
    const forked = await runtime.fork(run.id, options)
    const result = await forked.result
    return { forked, result, entries: await entriesOf(store, forked.id) }
  }
  return { runtime, store, run, entries, fork, seqOf }
}

const two = (model = 'two') => `workflow:
  - { id: one, type: llm, result: one, config: { model: "script:one" } }
  - { id: two, type: llm, result: two, config: { model: "script:${model}", stream: true, system: "$input.tone", messages: "$input.messages" } }
`

function twoScripts() {
  const one = createScriptedModel([say('one')])
  const scripts = {
    one,
    two: createScriptedModel([say('two'), say('again'), say('thrice')]),
    other: createScriptedModel([say('other')]),
  }
  return { one, scripts }
}

describe('forks', () => {
  test('complete steps are kept, the rest runs anew, in a thread of its own; the source stays as it is', async () => {
    const { one, scripts } = twoScripts()
    const { run, entries, fork, seqOf, store, runtime } = await recorded({ agents: { a: two() }, scripts })
    const at = seqOf((entry) => entry.type === 'step-finish' && entry.step === 'main/one')
    const { forked, result, entries: forkedEntries } = await fork({ at })
    expect(result).toMatchObject({ outcome: 'completed', text: 'again' })
    expect(one.calls).toHaveLength(1)
    expect(forked.threadId).toBe(`thread_${forked.id.slice(4)}`)
    expect(forked.threadId).not.toBe(run.threadId)
    expect(forkedEntries[0]).toMatchObject({ runId: forked.id, forkedFrom: { runId: run.id, seq: at } })
    expect(forkedEntries.slice(1, at)).toEqual(entries.slice(1, at))
    expect(only(forkedEntries, 'warning').map(({ code }) => code)).toEqual(['forked'])
    expect(await entriesOf(store, run.id)).toEqual(entries)
    // A message to it is the next of its thread.
    const next = await runtime.start('a', { messages }, { threadId: forked.threadId })
    expect((await next.result).outcome).toBe('failed')
    // A fork of the fork, at its end: there is nothing left to do.
    const end = await runtime.fork(forked.id, { at: forkedEntries.length })
    expect(await end.result).toMatchObject({ outcome: 'completed', text: 'again' })
    const [first] = await entriesOf(store, end.id)
    expect(first).toMatchObject({ forkedFrom: { runId: forked.id, seq: forkedEntries.length - 1 } })
  })

  test('another input counts for steps that start later; where it would count for none, the place is named', async () => {
    const { scripts } = twoScripts()
    const { fork, seqOf, entries, store, runtime, run } = await recorded({ agents: { a: two() }, scripts })
    const one = seqOf((entry) => entry.type === 'step-finish' && entry.step === 'main/one')
    const { forked, result } = await fork({
      at: one,
      input: { tone: 'Be kind.', messages: [{ role: 'user', content: 'Bye' }] },
    })
    expect(result.text).toBe('again')
    expect(scripts.two.calls.at(-1)!.options.prompt).toMatchObject([
      { content: 'Be kind.' },
      { content: [{ text: 'Bye' }] },
    ])
    const view = (await store.runs.view(forked.id))!.view as { asked: unknown }
    expect(view.asked).toMatchObject([{ content: 'Bye' }])
    const inside = seqOf((entry) => entry.type === 'text-delta' && entry.step === 'main/two/1')
    const refused = (options: ForkOptions) => expect(runtime.fork(run.id, options)).rejects
    await refused({ at: inside, input: { messages: [] } }).toMatchObject({
      code: 'bad-fork',
      message: `By entry ${inside} step main/two has told its model the messages already. Fork at ${one}, before it.`,
    })
    await refused({ at: entries.length, input: { tone: 'x' } }).toMatchObject({
      code: 'bad-fork',
      message: expect.stringContaining('every step has finished'),
    })
    expect(await store.runs.list({})).toHaveLength(2)
  })

  test('another agent goes on if it has the steps that have started; else it is said which one is missing', async () => {
    const { one, scripts } = twoScripts()
    const box = (id: string) => `workflow:
  - id: one
    type: parallel
    config: { branches: { x: [{ id: ${id}, type: llm, config: { model: "script:one" } }] } }
`
    const agents = { a: two(), b: two('other'), c: two().replace('id: one', 'id: first'), d: box('x') }
    const { fork, seqOf, runtime, run, store } = await recorded({ agents, scripts })
    const at = seqOf((entry) => entry.type === 'step-finish' && entry.step === 'main/one')
    const { forked, result, entries } = await fork({ at, agent: 'b' })
    expect(result.text).toBe('other')
    expect(one.calls).toHaveLength(1)
    expect(await store.runs.get(forked.id)).toMatchObject({ agent: 'b', status: 'completed' })
    expect(only(entries, 'resume')[0]).toMatchObject({ agent: 'b', pipeline: agents.b })
    // It stays that agent: a fork of it needs no name.
    const again = await runtime.fork(forked.id, { at: entries.find(({ type }) => type === 'resume')!.seq })
    await again.result
    expect(only(await entriesOf(store, again.id), 'prompt').at(-1)!.model).toBe('script:other')
    const refused = (agentId: string) => expect(runtime.fork(run.id, { at, agent: agentId })).rejects
    await refused('c').toMatchObject({
      code: 'bad-fork',
      message: `By entry ${at} step "one" has started, and the agent "c" has no such step. Fork at 1, before it, or start the agent with: millrace run c`,
    })
    await refused('d').toMatchObject({
      message: expect.stringContaining('step "one" has started as llm, and is parallel now'),
    })
    await refused('e').toMatchObject({ code: 'unknown-agent' })
    const fresh = await runtime.fork(run.id, { at: 1, agent: 'c' })
    expect((await fresh.result).outcome).toBe('failed')
  })

  test('places that are none are refused with those near them', async () => {
    const { scripts } = twoScripts()
    const { runtime, run, entries } = await recorded({ agents: { a: two() }, scripts })
    const ends = only(entries, 'step-finish').map(({ seq }) => seq)
    for (const at of [0, -1, 1.5, entries.length + 1, Number.NaN]) {
      await expect(runtime.fork(run.id, { at })).rejects.toMatchObject({ code: 'bad-input', status: 400 })
    }
    await expect(runtime.fork(run.id, { at: 999 })).rejects.toMatchObject({
      message: `"at" must be between 1 and ${entries.length}, the last entry, not 999. Complete steps near it end at ${[1, ...ends].slice(-4).join(', ')}.`,
    })
    await expect(runtime.fork('run_none', { at: 1 })).rejects.toMatchObject({ code: 'unknown-run' })
  })

  test('open requests stay open in the fork, and each run has its own answer; one that is over is asked again before', async () => {
    const tool = { parameters: z.object({}), execute: () => 'paid' }
    const scripts = {
      m: createScriptedModel([[toolCall('c', 'pay', {}), finish('tool-calls')], say('yes'), say('no')]),
    }
    const { runtime, run, store, entries } = await recorded({
      agents: { a: agent('tools: [{ name: pay, approval: true }]') },
      scripts,
      tools: { pay: tool },
    })
    const request = only(entries, 'request')[0]!
    const forked = await runtime.fork(run.id, { at: entries.length })
    expect(await store.runs.get(forked.id)).toMatchObject({ status: 'suspended' })
    expect(await entriesOf(store, forked.id)).toHaveLength(entries.length)
    await forked.answer(request.requestId, { kind: 'approval', approved: false })
    await until(store, forked.id, ({ type }) => type === 'run-end')
    expect((await store.runs.get(run.id))!.status).toBe('suspended')
    expect(only(await entriesOf(store, forked.id), 'tool-result')[0]).toMatchObject({ outcome: 'denied' })
    // Before it was asked, it is asked anew.
    const before = entries.find(({ step, type }) => type === 'step-start' && step === request.step)!.seq - 1
    const anew = await runtime.fork(run.id, { at: before })
    await anew.result
    expect(only(await entriesOf(store, anew.id), 'request')[0]!.requestId).not.toBe(request.requestId)

    const late = createEngine({
      agents: { a: agent('tools: [{ name: pay, approval: true }]') },
      scripts,
      tools: { pay: tool },
    })
    onTestFinished(() => late.close())
    const old = entries.map((entry) => JSON.stringify(entry.type === 'request' ? { ...entry, deadline: 5 } : entry))
    const { id } = await importNdjson(late.store, old.join('\n'))
    await expect(late.runtime.fork(id, { at: entries.length })).rejects.toMatchObject({
      code: 'bad-fork',
      message: `The time to answer ${request.requestId} was over long ago. Fork at ${before}, before it is asked.`,
    })
  })

  test('a run that goes on is forked without being disturbed; a run time-out does not count what lies between', async () => {
    const gate = latch()
    const scripts = { m: createScriptedModel([[text('Hel'), gate, text('lo'), finish()], say('Forked')]) }
    engine = createEngine({ agents: { a: agent('', 'timeouts: { run: 60s }') }, scripts })
    const { runtime, store } = engine
    const run = await runtime.start('a', { messages })
    const { seq } = await until(store, run.id, ({ type }) => type === 'text-delta')
    const forked = await runtime.fork(run.id, { at: seq })
    expect(await forked.result).toMatchObject({ outcome: 'completed', text: 'Forked' })
    gate.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Hello' })
    // As if it was recorded a day ago.
    const entries = (await entriesOf(store, run.id)).map((each) => ({
      ...each,
      timestamp: each.timestamp - 86_400_000,
    }))
    const old = createEngine({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([say('In time')]) },
    })
    onTestFinished(() => old.close())
    const { id } = await importNdjson(old.store, entries.map((each) => JSON.stringify(each)).join('\n'))
    expect(await (await old.runtime.fork(id, { at: seq, trust: true })).result).toMatchObject({
      outcome: 'completed',
      text: 'In time',
    })
  })

  test('at each entry of a run with an approval that was given: it waits again, or goes on behind it', async () => {
    const scripts = {
      m: createScriptedModel([
        [toolCall('c', 'pay', {}), finish('tool-calls')],
        ...Array.from({ length: 200 }, () => say('paid')),
      ]),
    }
    const tools = { pay: { parameters: z.object({}), execute: () => 'done' } }
    const yaml = agent('tools: [{ name: pay, approval: true }]')
    const { runtime, run, store, entries: before } = await recorded({ agents: { a: yaml }, scripts, tools })
    await run.answer(only(before, 'request')[0]!.requestId, { kind: 'approval', approved: true })
    await until(store, run.id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(store, run.id)
    const seen = new Set<string>()
    for (const at of placesOf(entries.length)) {
      const forked = await runtime.fork(run.id, { at })
      await forked.result
      await entriesOf(store, forked.id)
      const { status } = (await store.runs.get(forked.id))!
      const waits = at >= only(entries, 'request')[0]!.seq && at < only(entries, 'response')[0]!.seq
      if (waits) expect(status, `at ${at}`).toBe('suspended')
      seen.add(status)
    }
    expect(seen).toEqual(new Set(['completed', 'suspended']))
  })
})

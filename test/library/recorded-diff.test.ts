/** A run and its re-run on `recording:<run>` do not differ. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  finish,
  reasoning,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { createRecordingModel } from '../../src/models/recording.ts'
import type { Entry } from '../../src/part/entry.ts'
import { recordedEntries, recordedRun } from '../../src/part/recording.ts'
import { diffRuns } from '../../src/record/diff/diff.ts'
import { agent, createEngine, entriesOf, only } from '../support/engine.ts'

const messages = [{ role: 'user', content: 'What is 1 + 2?' }]
const tools = {
  add: {
    parameters: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }: { a: number; b: number }) => a + b,
  },
}
const pricing = { 'script:m': { input: 1, output: 2 }, 'script:n': { input: 1, output: 2 } }
const loop = () => [
  [
    reasoning('Add.'),
    text('Adding.'),
    toolCall('c1', 'add', { a: 1, b: 2 }),
    toolCall('c2', 'add', { a: 3, b: 4 }),
    finish('tool-calls', { in: 7, out: 3 }),
  ],
  [text('It ', 'is 3.'), finish('stop', { in: 9, out: 2 })],
]

async function runTwice(agents: Record<string, string>, m: ScriptStep[][], n: ScriptStep[][] = []) {
  const first = createEngine({
    agents,
    scripts: { m: createScriptedModel(m), n: createScriptedModel(n) },
    tools,
    pricing,
  })
  onTestFinished(() => first.close())
  const { id } = await (await first.runtime.start('a', { messages })).result
  const recorded = recordedRun(first.store.log, id)
  const recording = createRecordingModel(recorded, { usage: 'recorded' })
  const again = createEngine({ agents, scripts: { m: recording, n: recording }, tools, pricing })
  onTestFinished(() => again.close())
  const run = await again.runtime.start('a', { messages })
  await run.result
  const entries = await entriesOf(first.store, id)
  return { entries, again, recorded, rerun: recordedRun(again.store.log, run.id), first }
}

const provided: ScriptStep[] = [
  { type: 'tool-call', toolCallId: 'p1', toolName: 'web', input: '{"q":"x"}', providerExecuted: true },
  { type: 'tool-result', toolCallId: 'p1', toolName: 'web', result: { found: 1 } },
]
const both = `workflow:
  - id: both
    type: parallel
    config:
      branches:
        left: [{ id: one, type: llm, config: { model: "script:m" } }]
        right: [{ id: two, type: llm, config: { model: "script:n" } }]
`
const router = `workflow:
  - { id: router, type: router, config: { model: "script:m", messages: "$input.messages", tools: [{ name: add }] }, result: route }
  - { id: answer, type: llm, config: { model: "script:n", stream: true, messages: "$route.messages" } }
`
const caller = `workflow:
  - { id: call, type: call-agent, config: { agent: child, input: { messages: "$input.messages" } }, result: called }
  - { id: answer, type: llm, config: { model: "script:n", stream: true } }
`
const hi = (word: string) => [[text(word), finish('stop', { in: 3, out: 1 })]]

describe('diff of recordings', () => {
  test.each<[string, Record<string, string>, ScriptStep[][], ScriptStep[][]?]>([
    ['text', { a: agent() }, hi('Hello')],
    ['tools', { a: agent('tools: [add]') }, loop()],
    ['a router', { a: router }, loop(), hi('Three.')],
    ['parallel branches', { a: both }, hi('L'), hi('R')],
    ['a called agent', { a: caller, child: agent('tools: [add]') }, loop(), hi('Done')],
    ['tools of the provider', { a: agent() }, [[...provided, text('Found.'), finish()]]],
    ['a call that failed', { a: agent('retries: 0') }, []],
  ])('%s: the run on its recording does not differ from it', async (_, agents, m, n) => {
    const { recorded, rerun, entries } = await runTwice(agents, m, n)
    const { divergence, a, b } = await diffRuns(recorded, rerun)
    expect(divergence).toBeUndefined()
    expect({ ...b, id: '', duration: 0 }).toEqual({ ...a, id: '', duration: 0 })
    expect(entries.length).toBeGreaterThan(5)
  })

  test('of an attempt that a crash ended nothing is said again: the runs part there, and not from the run without the crash', async () => {
    const { entries, recorded: whole } = await runTwice({ a: agent() }, [[text('Hel', 'lo'), finish()]])
    const start = only(entries, 'step-start').find(({ step }) => step === 'main/answer/1')!.seq
    const spoken = only(entries, 'text-delta')[0]!.seq
    const attempt = entries
      .slice(start - 1)
      .map(
        (entry) =>
          JSON.parse(
            JSON.stringify(entry).replaceAll('"id":"1.1"', '"id":"2.1"').replace('"attempt":1', '"attempt":2'),
          ) as Entry,
      )
    const reset = { ...entries[start - 1]!, type: 'step-reset', attempt: 1 } as Entry
    const crashed = [...entries.slice(0, spoken), reset, ...attempt].map(
      (entry, i) => ({ ...entry, seq: i + 1 }) as Entry,
    )
    const source = recordedEntries('crashed', crashed)
    const again = createEngine({
      agents: { a: agent() },
      pricing,
      scripts: { m: createRecordingModel(source, { usage: 'recorded' }) },
    })
    onTestFinished(() => again.close())
    const run = await again.runtime.start('a', { messages })
    await run.result
    const rerun = recordedRun(again.store.log, run.id)
    expect((await diffRuns(whole, rerun)).divergence).toBeUndefined()
    expect((await diffRuns(source, rerun)).divergence).toMatchObject({ a: { type: 'step-reset' } })
  })
})

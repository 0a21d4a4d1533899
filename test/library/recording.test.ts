/** `recording:<run>`: what a model said once, said again; and a run that keeps the text it started with. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  throws,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import { MillraceError } from '../../src/part/error.ts'
import { recordedEntries, recordedRun } from '../../src/part/recording.ts'
import { createRecordingModel } from '../../src/models/recording.ts'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { agent, createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

const add: ToolImplementation = {
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }: { a: number; b: number }) => a + b,
}
const messages = [{ role: 'user', content: 'What is 1 + 2?' }]

async function recorded(options: EngineOptions, name = 'a') {
  engine = createEngine(options)
  const { runtime, store } = engine
  const result = await (await runtime.start(name, { messages })).result
  // The same agents on the recording, beside what is recorded already.
  const replayed = createEngine({
    ...options,
    agents: Object.fromEntries(
      Object.entries(options.agents).map(([id, yaml]) => [
        id,
        yaml.replaceAll(/script:\w+/gu, `recording:${result.id}`),
      ]),
    ),
    dir: engine.dir,
    keep: true,
    scripts: {},
  })
  onTestFinished(() => replayed.close())
  return { store, result, replayed }
}

const said = (entries: Awaited<ReturnType<typeof entriesOf>>) =>
  entries
    .filter(({ type }) => /^(text|reasoning|tool-input)-(start|delta|end)$|^tool-(call|result)$|^retry$/u.test(type))
    .map((entry) => ({ ...entry, seq: 0, timestamp: 0 }))

describe('recordings', () => {
  test('a tool loop is said again, part by part, call by call; tools run anew; it costs nothing', async () => {
    const model = createScriptedModel([
      [reasoning('Let me ', 'add.'), text('Adding.'), toolCall('c1', 'add', { a: 1, b: 2 }), finish('tool-calls')],
      [text('It ', 'is ', '3.'), finish()],
    ])
    const { store, result, replayed } = await recorded({
      agents: { a: agent('tools: [add]') },
      scripts: { m: model },
      tools: { add },
    })
    for (const _ of [1, 2]) {
      const run = await replayed.runtime.start('a', { messages })
      expect(await run.result).toMatchObject({
        outcome: 'completed',
        text: 'Adding.It is 3.',
        usage: { totalTokens: 0, source: 'reported' },
      })
      const entries = await entriesOf(replayed.store, run.id)
      expect(said(entries)).toEqual(said(await entriesOf(store, result.id)))
      expect(only(entries, 'run-end')[0]!.cost).toBe(0)
    }
    expect(model.calls).toHaveLength(2)
  })

  test('of a call that was retried, the attempt that counted is said, at once; it may report what it used then', async () => {
    const busy = new MillraceError('model-unavailable', 'Busy.', { retryAfter: 0 })
    const used = { in: 7, out: 3 }
    const model = createScriptedModel([[throws(busy)], [text('Hi'), finish('stop', used)], [throws(busy)]])
    const { store, result } = await recorded({ agents: { a: agent('retries: 1') }, scripts: { m: model } })
    expect(only(await entriesOf(store, result.id), 'retry')).toHaveLength(1)
    for (const usage of ['none', 'recorded'] as const) {
      const recording = createRecordingModel(recordedRun(store.log, result.id), { usage })
      const again = createEngine({ agents: { a: agent('retries: 1') }, scripts: { m: recording } })
      onTestFinished(() => again.close())
      const run = await again.runtime.start('a', { messages })
      expect(await run.result).toMatchObject({
        text: 'Hi',
        usage: usage === 'none' ? { totalTokens: 0 } : { inputTokens: 7, outputTokens: 3, totalTokens: 10 },
      })
      expect(only(await entriesOf(again.store, run.id), 'retry')).toEqual([])
    }
  })

  test('a call that failed for good is not tried again, although another attempt of a real model might help', async () => {
    const busy = new MillraceError('model-unavailable', 'Busy.')
    const failing = await recorded({
      agents: { a: agent('retries: 0') },
      scripts: { m: createScriptedModel([[throws(busy)]]) },
    })
    const again = createEngine({
      agents: { a: agent('retries: 3').replace('script:m', `recording:${failing.result.id}`) },
      dir: engine!.dir,
      keep: true,
    })
    onTestFinished(() => again.close())
    const run = await again.runtime.start('a', { messages })
    expect((await run.result).error).toEqual(failing.result.error)
    expect(only(await entriesOf(again.store, run.id), 'retry')).toEqual([])
  })

  test('entries of a file are a recording, too; a parallel branch gets the calls of its own path', async () => {
    const yaml = `workflow:
  - id: both
    type: parallel
    config:
      branches:
        left: [{ id: one, type: llm, config: { model: "script:left" }, result: one }]
        right: [{ id: two, type: llm, config: { model: "script:right" }, result: two }]
    result: both
return: "$both.left.text $both.right.text"
`
    const scripts = {
      left: createScriptedModel([[text('L'), finish()]]),
      right: createScriptedModel([[text('R'), finish()]]),
    }
    const { store, result } = await recorded({ agents: { a: yaml }, scripts })
    const recording = createRecordingModel(recordedEntries('both.ndjson', await entriesOf(store, result.id)))
    const again = createEngine({ agents: { a: yaml }, scripts: { left: recording, right: recording } })
    onTestFinished(() => again.close())
    expect((await (await again.runtime.start('a', { messages })).result).output).toBe('L R')
  })

  test('several steps, each of which gets its own calls; a step it has not is told which there are', async () => {
    const step = (id: string, config = '') => `
  - id: ${id}
    type: llm
    result: ${id}
    config: { model: "script:${id}"${config} }`
    const yaml = `workflow:${step('facts')}${step('poem', ', stream: true, system: "$facts.text"')}`
    const scripts = {
      facts: createScriptedModel([[text('facts'), finish()]]),
      poem: createScriptedModel([[text('poem'), finish()]]),
    }
    const { result, replayed, store } = await recorded({ agents: { a: yaml }, scripts })
    expect(await (await replayed.runtime.start('a', { messages })).result).toMatchObject({ text: 'poem' })
    const other = createEngine({
      agents: { b: yaml.replaceAll('poem', 'song').replaceAll(/script:\w+/gu, `recording:${result.id}`) },
      dir: engine!.dir,
      keep: true,
    })
    onTestFinished(() => other.close())
    const run = await other.runtime.start('b', { messages })
    expect((await run.result).error).toMatchObject({
      code: 'recording-over',
      message: `Step "song" (llm): Run ${result.id} has no model calls in step main/song. Steps with model calls: main/facts, main/poem.`,
    })
    expect(await store.runs.get(run.id)).toMatchObject({ status: 'failed' })
  })

  test('a call that had failed fails again with the same code; a longer conversation than the recorded is told', async () => {
    const refused = new MillraceError('model-refused', 'No.', { status: 400 })
    const failing = await recorded({ agents: { a: agent() }, scripts: { m: createScriptedModel([[throws(refused)]]) } })
    expect(failing.result.error).toMatchObject({ code: 'model-refused', status: 400 })
    expect((await (await failing.replayed.runtime.start('a', { messages })).result).error).toEqual(failing.result.error)
    await engine?.close()

    const loop = createScriptedModel([[toolCall('c1', 'add', { a: 1, b: 2 }), finish('tool-calls')]])
    const short = await recorded({
      agents: { a: agent('tools: [add]\nmaxSteps: 1') },
      scripts: { m: loop },
      tools: { add },
    })
    const longer = createEngine({
      agents: { a: agent('tools: [add]').replace('script:m', `recording:${short.result.id}`) },
      tools: { add },
      dir: engine!.dir,
      keep: true,
    })
    onTestFinished(() => longer.close())
    expect((await (await longer.runtime.start('a', { messages })).result).error).toMatchObject({
      code: 'recording-over',
      message: expect.stringContaining('has only 1 model call(s) in this step'),
    })
  })

  test('a run that is not there is one clear line', async () => {
    engine = createEngine({ agents: { a: agent().replace('script:m', 'recording:run_none') } })
    expect((await (await engine.runtime.start('a', { messages })).result).error).toMatchObject({
      code: 'unknown-model',
      message:
        'Step "answer" (llm): Cannot replay the model "recording:run_none": the log has no run run_none with model calls.',
    })
  })

  test('hot reload: a running run ends with the text it started with, the next one has the new text', async () => {
    const gate = latch()
    const held = createScriptedModel([
      [text('one'), finish()],
      [gate, text('two'), finish()],
    ])
    const yaml = (last: string) => `
workflow:
  - { id: first, type: llm, config: { model: "held:x" }, result: first }
  - { id: second, type: llm, config: { model: "held:x" }, result: second }
  - { id: out, type: output-generator, config: { template: "$first.text $second.text ${last}" } }
`
    ;(globalThis as { heldModel?: unknown }).heldModel = held
    onTestFinished(() => void delete (globalThis as { heldModel?: unknown }).heldModel)
    const dir = folder({
      'a.yaml': yaml('old'),
      'millrace.config.mjs': 'export default { models: { providers: { held: () => globalThis.heldModel } } }',
    })
    const told: string[] = []
    const log = (line: string) => void told.push(line)
    const server = await serve({ dir, data: 'none', env: {}, port: 0, host: '127.0.0.1', log })
    onTestFinished(() => server.close())
    const { runtime } = server.project
    const run = await runtime.start('a', { messages })
    await gate.reached
    writeFileSync(join(dir, 'a.yaml'), yaml('new'))
    await expect.poll(() => told).toContain('reloaded: a')
    gate.open()
    expect((await run.result).output).toBe('one two old')
    const start = await until(runtime.store, run.id, ({ type }) => type === 'run-start')
    expect(start).toMatchObject({ pipeline: yaml('old') })
    expect(runtime.agents.get('a')!.pipeline.text).toBe(yaml('new'))
  })
})

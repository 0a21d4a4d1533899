/** A crash behind any entry: ended truthfully, or gone on with from the last complete model or tool call. */
import { rmSync } from 'node:fs'
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { beforeAll, describe, expect, test, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import { withoutSuperseded } from '../../src/fold/superseded.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { mostRecoveries } from '../../src/engine/state.ts'
import {
  drop,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only, type Engine, type EngineOptions, openEngine } from '../support/engine.ts'
import { createTold, cutAfter, eventually, plant, resultsIn } from '../support/going-on.ts'
import { placesOf } from '../support/thorough.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const any = z.looseObject({})

interface Life {
  options: EngineOptions
  model: ReturnType<typeof createTold>
  /** Calls that the server's tools were given in this life. */
  ran: string[]
}

interface Scenario {
  yaml: (top: string) => string
  answer: (prompt: LanguageModelV4Prompt) => ScriptStep[]
  idempotent?: boolean
  approved?: boolean
  /** How the whole run ends; default `completed`. */
  outcome?: string
}

const twoTools = (prompt: LanguageModelV4Prompt): ScriptStep[] => {
  const results = resultsIn(prompt)
  if (results.size === 0) {
    return [
      reasoning('hm'),
      text('Let me ', 'see. '),
      toolCall('c1', 'work', { n: 1 }),
      toolCall('c2', 'work', { n: 2 }),
      finish('tool-calls'),
    ]
  }
  if (results.size === 2) return [toolCall('c3', 'work', { n: 3 }), finish('tool-calls')]
  return [text('Done', ' with 3.'), finish()]
}
const toolAgent = (top: string) => agent('tools: [work]', top)

const scenarios: Record<string, Scenario> = {
  'plain text': {
    yaml: (top) => agent('', top),
    answer: () => [reasoning('Let ', 'me think.'), text('Hel', 'lo'), text(' there'), finish()],
  },
  'a blocking step, a generator, an answer': {
    yaml: (top) => `${top}
workflow:
  - { id: plan, type: llm, result: plan, config: { model: "script:m", system: plan } }
  - { id: shape, type: output-generator, result: shape, config: { template: { topic: "$plan.text" } } }
  - id: answer
    type: llm
    config: { model: "script:m", stream: true, messages: [{ role: user, content: "about $shape.topic" }] }
`,
    answer: (prompt) => {
      const planning = prompt[0]?.role === 'system'
      return planning ? [text('the ', 'sea'), finish()] : [text(JSON.stringify(prompt[0]!.content)), finish()]
    },
  },
  'a loop with parallel tools': { yaml: toolAgent, answer: twoTools },
  'a loop with idempotent tools': { yaml: toolAgent, answer: twoTools, idempotent: true },
  'an approval': {
    yaml: (top) => agent('tools: [{ name: work, approval: true }]', top),
    approved: true,
    answer: (prompt) =>
      resultsIn(prompt).size === 0
        ? [toolCall('c1', 'work', { n: 1 }), finish('tool-calls')]
        : [text('Paid.'), finish()],
  },
  'after steps': {
    yaml: (top) => `${agent('', top)}    result: said
after:
  - { id: title, type: llm, result: title, config: { model: "script:m", system: title } }
  - { id: note, type: output-generator, config: { template: { title: "$title.text", said: "$said.text" } } }
`,
    answer: (prompt) => (prompt[0]?.role === 'system' ? [text('A title'), finish()] : [text('Hel', 'lo'), finish()]),
  },
  'a failing model': {
    yaml: (top) => agent('retries: 0', top),
    answer: () => [text('Hel'), drop()],
    outcome: 'failed',
  },
}

function live({ yaml, answer, idempotent = false }: Scenario, top: string): Life {
  const ran: string[] = []
  const work: ToolImplementation = {
    parameters: any,
    idempotent,
    execute: ({ n }: { n: number }, { toolCallId }) => {
      ran.push(toolCallId)
      return { square: n * n }
    },
  }
  const model = createTold(answer)
  return { options: { agents: { a: yaml(top) }, tools: { work }, scripts: { m: model } }, model, ran }
}

/** Answers whatever is asked until the run ends. */
async function attend(engine: Engine, run: string): Promise<Entry[]> {
  for (;;) {
    const row = (await engine.store.runs.get(run))!
    if (row.status === 'suspended') {
      for (const { requestId } of only(await entriesOf(engine.store, run), 'request')) {
        await engine.runtime.answer(run, requestId, { kind: 'approval', approved: true })
      }
    }
    const { outcome } = await (await engine.runtime.open(run))!.result
    if (outcome !== 'suspended') return entriesOf(engine.store, run)
  }
}

async function recording(scenario: Scenario, top: string): Promise<Entry[]> {
  const engine = createEngine(live(scenario, top).options)
  try {
    const { id } = await engine.runtime.start('a', { messages })
    const entries = await attend(engine, id)
    expect(only(entries, 'run-end')).toMatchObject([{ outcome: scenario.outcome ?? 'completed' }])
    return entries
  } finally {
    await engine.close()
  }
}

const textOf = (entries: readonly Entry[]) =>
  only(entries, 'text-delta')
    .map(({ delta }) => delta)
    .join('')
const stepsOf = (entries: readonly Entry[]) =>
  only(entries, 'step-start').map(({ step, stepType }) => `${step} ${stepType}`)

describe.each(Object.entries(scenarios))('%s', (name, scenario) => {
  const nth = Object.keys(scenarios).indexOf(name)
  let whole: Entry[]
  let plain: Entry[]
  beforeAll(async () => {
    whole = await recording(scenario, 'recover: true')
    plain = await recording(scenario, '')
  })

  test('recover: true goes on behind every entry', async () => {
    const runId = only(whole, 'run-start')[0]!.runId
    for (const k of placesOf(whole.length - 1, nth)) {
      const { options, model, ran } = live(scenario, 'recover: true')
      const engine = await cutAfter(whole, k, options)
      try {
        const prefix = whole.slice(0, k)
        const waits = prefix.at(-1)!.type === 'suspend'
        expect(await engine.runtime.recover()).toEqual({ resumed: waits ? 0 : 1, interrupted: 0 })
        const entries = await attend(engine, runId)
        const where = `cut after ${k}, ${prefix.at(-1)!.type} ${prefix.at(-1)!.step}`
        expect(only(entries, 'run-end'), where).toMatchObject([{ outcome: scenario.outcome ?? 'completed' }])
        expect(entries.slice(0, k), where).toEqual(prefix)

        // The same steps under the same paths, each once, whatever was cut off.
        const kept = withoutSuperseded(entries)
        expect(stepsOf(kept).toSorted(), where).toEqual(stepsOf(whole).toSorted())
        // A model call that had said everything is not made again; one that had not is, once.
        const saidBefore = only(withoutSuperseded(prefix), 'finish').length
        if (scenario.outcome === undefined)
          expect(model.calls.length, where).toBe(only(whole, 'finish').length - saidBefore)
        else expect(model.calls.length, where).toBeLessThanOrEqual(1)
        expect(only(kept, 'usage').length, where).toBe(only(whole, 'usage').length)

        // No tool twice: begun before the crash and without outcome is unavailable, unless twice does no harm.
        const begun = only(prefix, 'step-start').filter(({ stepType }) => stepType === 'tool-call')
        const done = new Set(only(prefix, 'tool-result').map(({ toolCallId }) => toolCallId))
        const lost = begun.map(({ toolCallId }) => toolCallId!).filter((id) => !done.has(id))
        expect(new Set(ran).size, where).toBe(ran.length)
        for (const id of done) expect(ran, where).not.toContain(id)
        for (const id of lost) expect(ran.includes(id), where).toBe(scenario.idempotent === true)
        const outcomes = only(kept, 'tool-result').filter(({ outcome }) => outcome !== undefined)
        expect(
          outcomes.map(({ toolCallId, outcome }) => [toolCallId, outcome]),
          where,
        ).toEqual(scenario.idempotent ? [] : lost.map((id) => [id, 'unavailable']))
        if (lost.length === 0 || scenario.idempotent) expect(textOf(kept), where).toBe(textOf(whole))
        expect(only(entries, 'run-end')[0]!.output, where).toEqual(only(whole, 'run-end')[0]!.output)
      } finally {
        await engine.close()
      }
    }
  })

  test('recover: false ends it as interrupted behind every entry', async () => {
    const runId = only(plain, 'run-start')[0]!.runId
    for (const k of placesOf(plain.length - 1, nth)) {
      const { options, model, ran } = live(scenario, '')
      const engine = await cutAfter(plain, k, options)
      try {
        const prefix = plain.slice(0, k)
        const where = `cut after ${k}, ${prefix.at(-1)!.type} ${prefix.at(-1)!.step}`
        const counts = await engine.runtime.recover()
        if (prefix.at(-1)!.type === 'suspend') {
          expect(counts).toEqual({ resumed: 0, interrupted: 0 })
          expect((await engine.store.runs.get(runId))!.status).toBe('suspended')
          continue
        }
        expect(counts).toEqual({ resumed: 0, interrupted: 1 })
        const entries = await entriesOf(engine.store, runId)
        const answered = only(prefix, 'answer-end').length > 0
        const [end] = only(entries, 'run-end')
        expect(end, where).toMatchObject(
          answered ? { outcome: 'completed' } : { outcome: 'interrupted', error: { code: 'interrupted' } },
        )
        expect(only(entries, 'usage').length, where).toBe(only(prefix, 'prompt').length)
        if (only(prefix, 'prompt').length > 0) expect(end!.usage.inputTokens, where).toBeGreaterThan(0)
        const guessed = only(entries.slice(k), 'usage').some(({ usage }) => usage.source === 'estimated')
        if (guessed) expect(end!.usage.source, where).toBe('estimated')
        expect([model.calls.length, ran.length], where).toEqual([0, 0])
        // A second look changes nothing.
        expect(await engine.runtime.recover()).toEqual({ resumed: 0, interrupted: 0 })
        expect(await (await engine.runtime.open(runId))!.result).toMatchObject({ outcome: end!.outcome })
      } finally {
        await engine.close()
      }
    }
  })
})

test("a step of one's own that was cut off is not run a second time, and says so", async () => {
  let ran = 0
  const yaml = `recover: true
workflow:
  - { id: mine, type: mine }
`
  const options: EngineOptions = { agents: { a: yaml }, steps: { mine: () => ({ n: ++ran }) } }
  const whole = openEngine(options)
  const run = await whole.runtime.start('a', {})
  expect(await run.result).toMatchObject({ outcome: 'completed', output: { n: 1 } })
  const entries = await entriesOf(whole.store, run.id)
  const k = entries.findIndex(({ type }) => type === 'step-start') + 1
  const engine = await cutAfter(entries, k, options)
  onTestFinished(() => engine.close())
  await engine.runtime.recover()
  const result = await (await engine.runtime.open(run.id))!.result
  expect(result).toMatchObject({
    outcome: 'interrupted',
    error: { message: expect.stringContaining('not run a second time') },
  })
  expect(ran).toBe(1)
  await entriesOf(engine.store, run.id)
})

test('starting a run under the id of another is refused and leaves that one alone', async () => {
  const gate = latch()
  const engine = openEngine({
    agents: { a: agent() },
    scripts: { m: createTold(() => [text('mine'), gate, finish()]) },
  })
  const run = await engine.runtime.start('a', { messages }, { runId: 'run_mine' })
  await expect(engine.runtime.start('a', { messages }, { runId: 'run_mine' })).rejects.toMatchObject({
    code: 'run-exists',
  })
  gate.open()
  expect(await run.result).toMatchObject({ outcome: 'completed', text: 'mine' })
})

test('a run that can no longer be read does not keep the others from going on', async () => {
  const options = {
    agents: { a: agent('', 'recover: true') },
    scripts: { m: createTold(() => [text('Hello'), finish()]) },
  }
  const whole = openEngine(options)
  const run = await whole.runtime.start('a', { messages })
  await run.result
  const entries = await entriesOf(whole.store, run.id)
  const engine = await cutAfter(entries, 3, options)
  onTestFinished(() => engine.close())
  const broken = { ...only(entries, 'run-start')[0]!, runId: 'run_broken', pipeline: 'recover: true\nworkflow: 7' }
  await plant(engine.dir, [broken])
  expect(await engine.runtime.recover()).toEqual({ resumed: 1, interrupted: 1 })
  expect(await (await engine.runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed' })
  expect(await (await engine.runtime.open('run_broken'))!.result).toMatchObject({
    outcome: 'interrupted',
    error: { message: expect.stringContaining('It cannot continue') },
  })
})

describe('a suspended run that nobody could wake', () => {
  const asks = { tools: { ask: { parameters: any } } }
  const asking = () => createTold(() => [toolCall('c', 'ask'), finish('tool-calls')])

  test('is ended when a crash cut off its end', async () => {
    const options = { agents: { a: agent('tools: [ask]') }, ...asks, scripts: { m: asking() } }
    const whole = openEngine(options)
    const run = await whole.runtime.start('a', { messages })
    await run.result
    await run.stop()
    const entries = await entriesOf(whole.store, run.id)
    const suspended = entries.findIndex(({ type }) => type === 'suspend')
    for (let k = suspended + 2; k < entries.length; k++) {
      const engine = await cutAfter(entries, k, options)
      onTestFinished(() => engine.close())
      await engine.runtime.recover()
      expect(await (await engine.runtime.open(run.id))!.result).toMatchObject({ outcome: 'interrupted' })
      expect(only(await entriesOf(engine.store, run.id), 'run-end')).toHaveLength(1)
    }
  })

  test('is ended when its text can no longer be read: by its answer, and by a stop', async () => {
    const options = { agents: { a: agent('tools: [ask]') }, ...asks, scripts: { m: asking() } }
    const whole = openEngine(options)
    const { id, result } = await whole.runtime.start('a', { messages })
    await result
    const [first, ...rest] = await entriesOf(whole.store, id)
    const engine = await cutAfter([{ ...first, pipeline: 'workflow: 7' } as Entry, ...rest], rest.length + 1, options)
    onTestFinished(() => engine.close())
    const [request] = only(rest, 'request')
    await engine.runtime.answer(id, request!.requestId, { kind: 'tool', output: 1 })
    expect(only(await entriesOf(engine.store, id), 'run-end')).toMatchObject([{ outcome: 'interrupted' }])
    const stopped = await cutAfter([{ ...first, pipeline: 'workflow: 7' } as Entry, ...rest], rest.length + 1, options)
    onTestFinished(() => stopped.close())
    expect(await stopped.runtime.recover()).toEqual({ resumed: 0, interrupted: 0 })
    await stopped.runtime.stop(id)
    expect(only(await entriesOf(stopped.store, id), 'run-end')).toMatchObject([{ outcome: 'aborted' }])
  })
})

test('a crash of the run that goes on: again and again, until it is through', async () => {
  const options = { agents: { a: agent('tools: [work]', 'recover: true') } }
  const ran: string[] = []
  const work: ToolImplementation = { parameters: any, execute: (_, { toolCallId }) => ran.push(toolCallId) }
  const model = createTold(twoTools)
  const before: Engine[] = []
  let engine = openEngine({ ...options, tools: { work }, scripts: { m: model }, keep: true })
  const { id } = await engine.runtime.start('a', { messages })
  const { dir } = engine
  for (let life = 0; life < 40 && (await engine.store.runs.get(id))!.status === 'running'; life++) {
    await new Promise((resolve) => setImmediate(resolve))
    before.push(engine)
    engine = openEngine({ ...options, tools: { work }, scripts: { m: model }, dir, keep: true })
    await engine.runtime.recover()
  }
  await eventually(async () => (await engine.store.runs.get(id))!.status !== 'running')
  const entries = await entriesOf(engine.store, id)
  expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'completed' }])
  expect(before.length).toBeGreaterThan(0)
  expect(new Set(ran).size).toBe(ran.length)
  rmSync(dir, { recursive: true, force: true })
})

test('restarts in order are no crashes: a run goes on behind any number of them', async () => {
  const agents = { a: agent('', 'recover: true') }
  const gate = latch()
  const model = createTold(() => [text('one '), gate, text('two'), finish()])
  let engine = openEngine({ agents, scripts: { m: model }, keep: true })
  const { id } = await engine.runtime.start('a', { messages })
  for (let restarts = 1; restarts <= mostRecoveries + 2; restarts++) {
    await eventually(() => model.calls.length === restarts)
    await engine.runtime.close(0)
    engine = openEngine({ agents, scripts: { m: model }, dir: engine.dir, keep: true })
    expect(await engine.runtime.recover()).toEqual({ resumed: 1, interrupted: 0 })
  }
  gate.open()
  expect(await (await engine.runtime.open(id))!.result).toMatchObject({ outcome: 'completed', text: 'one two' })
  expect(only(await entriesOf(engine.store, id), 'warning').filter(({ code }) => code === 'recovered')).toHaveLength(
    mostRecoveries + 2,
  )
  rmSync(engine.dir, { recursive: true, force: true })
})

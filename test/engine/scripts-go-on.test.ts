/** Scripts that begin again from the log: after a crash, in a fork, and when their VM was lost. */
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, openEngine, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold, cutAfter, resultsIn } from '../support/going-on.ts'
import { often } from '../support/thorough.ts'

const any = z.looseObject({})
const echo: ToolImplementation = { parameters: any, execute: (input: unknown) => input }
const agent = (code: string, tools = '[echo]') => `recover: true
workflow:
  - { id: s, type: script, result: s, config: { code: ${JSON.stringify(code)}, tools: ${tools} } }`

async function whole(options: EngineOptions): Promise<{ entries: Entry[]; runId: string }> {
  const engine = createEngine(options)
  try {
    const run = await engine.runtime.start('a', {})
    await run.result
    return { entries: await entriesOf(engine.store, run.id), runId: run.id }
  } finally {
    await engine.close()
  }
}

async function goneOn(engine: Engine, runId: string): Promise<Entry[]> {
  await engine.runtime.recover()
  await (await engine.runtime.open(runId))!.result
  return entriesOf(engine.store, runId)
}

describe('a script goes on from the log', () => {
  const options = {
    agents: { a: agent('const a = await tools.echo({ n: 1 }); return [a, await tools.echo({ n: 2 })]') },
    tools: { echo },
  }
  const upTo = (entries: readonly Entry[], n: number) =>
    entries.findLastIndex((entry) => entry.type === 'tool-result' && entry.toolCallId.endsWith(`.${n}`)) + 1

  test('it fails, and calls nothing, if it makes another call than the log has', async () => {
    const { entries, runId } = await whole(options)
    const changed = entries.map((entry) =>
      entry.type === 'tool-call' && entry.toolCallId.endsWith('.1') ? { ...entry, input: '{"n":7}' } : entry,
    )
    let calls = 0
    const counting = { ...echo, execute: () => calls++ }
    const engine = await cutAfter(changed, upTo(changed, 1), { ...options, tools: { echo: counting } })
    try {
      const [end] = only(await goneOn(engine, runId), 'run-end')
      expect(end).toMatchObject({ outcome: 'failed', error: { code: 'script-diverged' } })
      expect(end!.error!.message).toContain('echo({"n":1}), but the log has echo({"n":7})')
      expect(calls).toBe(0)
    } finally {
      await engine.close()
    }
  })

  test('another engine is a warning', async () => {
    const { entries, runId } = await whole(options)
    const changed = entries.map((entry) =>
      entry.type === 'step-start' && entry.script !== undefined
        ? { ...entry, script: { ...entry.script, engine: 'quickjs-wasi 1.0.0' } }
        : entry,
    )
    const engine = await cutAfter(changed, upTo(changed, 1), options)
    try {
      const found = await goneOn(engine, runId)
      expect(only(found, 'warning').map(({ code }) => code)).toEqual(['recovered', 'script-engine-changed'])
      expect(only(found, 'run-end')[0]).toMatchObject({ outcome: 'completed', output: { s: [{ n: 1 }, { n: 2 }] } })
    } finally {
      await engine.close()
    }
  })

  test('lines on the console are recorded once', async () => {
    const code =
      'console.log("one"); await tools.echo({}); console.log("two"); await tools.echo({}); console.log("three")'
    const given = { agents: { a: agent(code) }, tools: { echo } }
    const { entries, runId } = await whole(given)
    const lines = (all: readonly Entry[]) => only(all, 'data').map(({ data }) => (data as { text: string }).text)
    expect(lines(entries)).toEqual(['one', 'two', 'three'])
    for (const [i, { type }] of entries.entries()) {
      if (type !== 'data') continue
      const engine = await cutAfter(entries, i + 1, given)
      try {
        expect(lines(await goneOn(engine, runId))).toEqual(['one', 'two', 'three'])
      } finally {
        await engine.close()
      }
    }
  })

  test('a fork at an inner entry goes on there; with another script it is refused', async () => {
    const engine = openEngine(options)
    const run = await engine.runtime.start('a', {})
    await run.result
    const entries = await entriesOf(engine.store, run.id)
    const at = upTo(entries, 1)
    const forked = await engine.runtime.fork(run.id, { at })
    expect(await forked.result).toMatchObject({ outcome: 'completed', output: { s: [{ n: 1 }, { n: 2 }] } })
    const found = await entriesOf(engine.store, forked.id)
    expect(only(found, 'tool-call').map(({ toolCallId }) => toolCallId)).toEqual(['script.main/s.1', 'script.main/s.2'])
    const other = agent('return 3')
    await expect(engine.runtime.fork(run.id, { at, pipeline: other })).rejects.toMatchObject({
      message: expect.stringContaining('"s" is in the middle') as string,
    })
  })

  test('with `idempotent` a call under way is made again; others are unavailable and reject', async () => {
    const code = 'return tools.echo({ n: 1 }).catch((error) => error.message)'
    for (const idempotent of [true, false]) {
      const given = { agents: { a: agent(code) }, tools: { echo: { ...echo, idempotent } } }
      const { entries, runId } = await whole(given)
      const k = entries.findIndex((entry) => entry.type === 'step-start' && entry.stepType === 'tool-call') + 1
      const engine = await cutAfter(entries, k, given)
      try {
        const [end] = only(await goneOn(engine, runId), 'run-end')
        const lost = 'The result of this tool call is unavailable. Do not assume that it ran.'
        expect(end!.output).toEqual({ s: idempotent ? { n: 1 } : lost })
      } finally {
        await engine.close()
      }
    }
  })
})

describe('what a script gets again', () => {
  test('answers in the order in which they came, not in that of its calls', async () => {
    const isFast = latch()
    const tools = {
      slow: { ...echo, idempotent: true, execute: () => isFast.opened.then(() => 'slow') },
      fast: { ...echo, idempotent: true, execute: () => 'fast' },
    }
    const code = `const order = []
const both = [tools.slow({}), tools.fast({})].map((each) => each.then((name) => { order.push(name); console.log(name) }))
await Promise.all(both)
return order`
    const options = { agents: { a: agent(code, '[slow, fast]') }, tools }
    const first = createEngine(options)
    const { id, result } = await first.runtime.start('a', {})
    await until(first.store, id, ({ type }) => type === 'data')
    isFast.open()
    await result
    const entries = await entriesOf(first.store, id)
    await first.close()
    expect(only(entries, 'run-end')[0]!.output).toEqual({ s: ['fast', 'slow'] })
    const engine = await cutAfter(
      entries,
      entries.findIndex(({ type, step }) => type === 'step-finish' && step === 'main/s/1'),
      options,
    )
    onTestFinished(() => engine.close())
    expect(only(await goneOn(engine, id), 'run-end')[0]!.output).toEqual({ s: ['fast', 'slow'] })
  })

  test('arguments that the log has redacted are the same call', async () => {
    const given = {
      agents: { a: agent('await tools.echo({ password: "hunter2" }); return (await tools.echo({ n: 2 })).n') },
      tools: { echo },
      secrets: { keys: ['password'] },
    }
    const { entries, runId } = await whole(given)
    expect(JSON.stringify(only(entries, 'tool-call'))).not.toContain('hunter2')
    const k = entries.findIndex(({ type }) => type === 'tool-result') + 1
    const engine = await cutAfter(entries, k, given)
    onTestFinished(() => engine.close())
    expect(only(await goneOn(engine, runId), 'run-end')[0]).toMatchObject({ outcome: 'completed', output: { s: 2 } })
  })

  test('a log that has one more call than it makes is another script', async () => {
    const given = {
      agents: { a: agent('return [await tools.echo({ n: 1 }), await tools.echo({ n: 2 })]') },
      tools: { echo },
    }
    const { entries, runId } = await whole(given)
    const changed = entries.map((entry) =>
      entry.type === 'run-start' ? { ...entry, pipeline: agent('return tools.echo({ n: 1 })') } : entry,
    )
    const k = entries.findLastIndex(({ type }) => type === 'tool-result') + 1
    const engine = await cutAfter(changed, k, given)
    onTestFinished(() => engine.close())
    const [end] = only(await goneOn(engine, runId), 'run-end')
    expect(end).toMatchObject({ outcome: 'failed', error: { code: 'script-diverged' } })
    expect(end!.error!.message).toContain('the log has another call, of echo')
  })

  test('the result of a script that a model wrote, if the server stopped before the call had it', async () => {
    const model = createTold((prompt) => {
      const [result] = resultsIn(prompt).values()
      return result === undefined
        ? [toolCall('c1', 'runCode', { code: 'return tools.echo({ n: 1 })' }), finish('tool-calls')]
        : [text(JSON.stringify(result)), finish()]
    })
    let calls = 0
    const given = {
      agents: {
        a: `recover: true
workflow: [{ id: m, type: llm, config: { model: "script:m", messages: [{ role: user, content: Go }], tools: [{ code: [echo] }] } }]`,
      },
      tools: { echo: { ...echo, execute: () => ++calls } },
      scripts: { m: model },
    }
    const { entries, runId } = await whole(given)
    const k = entries.findIndex(({ type, step }) => type === 'step-finish' && step === 'main/m/2/script') + 1
    const engine = await cutAfter(entries, k, given)
    onTestFinished(() => engine.close())
    const found = await goneOn(engine, runId)
    expect(calls).toBe(1)
    expect(only(found, 'step-start').filter(({ stepType }) => stepType === 'script')).toHaveLength(1)
    expect(only(found, 'tool-result').at(-1)).toMatchObject({ toolCallId: 'c1', result: { value: 1 } })
  })

  test('a question rejects where nobody can be asked', async () => {
    const engine = openEngine({ agents: { a: agent('return ask("Go on?").catch((error) => error.message)', '[]') } })
    const run = await engine.runtime.start('a', {}, { handOver: true })
    expect((await run.result).output).toEqual({ s: 'Nobody can be asked in this run.' })
    expect(only(await entriesOf(engine.store, run.id), 'request')).toEqual([])
  })
})

/** A random script: rounds of calls, raced or awaited together, with lots and failures that it catches. */
const statement = fc.oneof(
  fc
    .integer({ min: 1, max: 4 })
    .map((n) => `seen.push(...(await Promise.all([${Array.from({ length: n }, (_, i) => `call(${i})`).join(', ')}])))`),
  fc
    .integer({ min: 2, max: 3 })
    .map((n) => `seen.push(await Promise.race([${Array.from({ length: n }, (_, i) => `call(${i})`).join(', ')}]))`),
  fc.constant('if (Math.random() < 0.5) seen.push(await call("lot"))'),
  fc.constant('later.push(call("later"))'),
  fc.constant('seen.push(await tools.fail({}).catch((error) => error.message))'),
  fc.constant('seen.push(Date.now() > 0, new Date().getUTCFullYear() > 2000)'),
)
const scripts = fc.array(statement, { minLength: 1, maxLength: 6 }).map(
  (lines) => `const seen = [], later = []
const call = (what) => tools.echo({ what, lot: Math.floor(Math.random() * 100), n: seen.length })
${lines.join('\n')}
return [...seen, ...(await Promise.all(later))]`,
)

test('random scripts, cut anywhere, make the same calls and return the same', async () => {
  const tools = {
    echo: { ...echo, idempotent: true },
    fail: { parameters: any, idempotent: true, execute: () => Promise.reject(new Error('It failed.')) },
  }
  await fc.assert(
    fc.asyncProperty(scripts, fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), async (code, where) => {
      const options = { agents: { a: agent(code, '[echo, fail]') }, tools }
      const { entries, runId } = await whole(options)
      const k = 2 + Math.floor(where * (entries.length - 3))
      const engine = await cutAfter(entries, k, options)
      try {
        const found = await goneOn(engine, runId)
        const calls = (all: readonly Entry[]) =>
          only(all, 'tool-call').map(({ toolCallId, toolName, input }) => ({ toolCallId, toolName, input }))
        const [before, after] = [only(entries, 'run-end')[0]!, only(found, 'run-end')[0]!]
        expect(after.outcome).toBe(before.outcome)
        // What came later than the cut may have come in another order: then a race has another winner.
        if (!code.includes('race')) {
          expect(calls(found)).toEqual(calls(entries))
          expect(after.output).toEqual(before.output)
        }
        expect(found.slice(0, k)).toEqual(entries.slice(0, k))
      } finally {
        await engine.close()
      }
    }),
    { numRuns: often(60) },
  )
}, 120_000)

test('scripts of a worker that had to be ended begin again and lose nothing', async () => {
  // Four scripts on two workers: each bad one holds a worker in native code.
  let asked = 0
  const slow: ToolImplementation = { parameters: any, execute: () => ++asked }
  const engine = openEngine({
    agents: {
      good: agent('let n = 0; for (let i = 0; i < 20; i++) n += await tools.slow({}); return n', '[slow]'),
      bad: `workflow: [{ id: s, type: script, config: { code: ${JSON.stringify("const text = 'a'.repeat(1 << 22); for (let i = 0; i < 100; i++) text.lastIndexOf('b'.repeat(i + 1 << 10))")}, limits: { time: 200ms } } }]`,
    },
    tools: { slow },
  })
  const runs = await Promise.all(['good', 'bad', 'good', 'bad'].map((id) => engine.runtime.start(id, {})))
  const results = await Promise.all(runs.map(({ result }) => result))
  expect(results.map(({ outcome }) => outcome)).toEqual(['completed', 'failed', 'completed', 'failed'])
  expect(asked).toBe(40)
  for (const run of runs) await entriesOf(engine.store, run.id)
}, 60_000)

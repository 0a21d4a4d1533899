/** The processes of CLI agents: what they get, what they leave, and how they are stopped. */
import { mkdirSync, readFileSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { EntryOf } from '../../src/part/entry.ts'
import { createEngine, entriesOf, only, taken, type EngineOptions } from '../support/engine.ts'
import { cutAfter, eventually } from '../support/going-on.ts'
import { hasProcessTable, installFakes, processesWith, startLatch, untilGone } from '../support/cli/fakes.ts'

const input = { messages: [{ role: 'user' as const, content: 'Look at it.' }] }

function engineOf(options: EngineOptions) {
  const engine = createEngine(options)
  onTestFinished(() => engine.close())
  return engine
}

async function ran(options: EngineOptions, given: Record<string, unknown> = input) {
  const engine = engineOf(options)
  const run = await engine.runtime.start('a', given)
  const result = await run.result
  return { ...result, entries: await entriesOf(engine.store, run.id) }
}

describe('processes of CLI agents', () => {
  test('of the server’s environment it gets PATH, HOME, LANG and the like, and what the agent names', async () => {
    const { agent, environment, reports } = installFakes()
    const secret = {
      OPENAI_API_KEY: 'sk-one',
      ANTHROPIC_API_KEY: 'sk-two',
      MILLRACE_API_KEY: 'three',
      NODE_OPTIONS: '--no-warnings',
    }
    const lang = { LANG: 'C.UTF-8', TZ: 'UTC' }
    const config = 'env: [ANTHROPIC_API_KEY, "NOT_SET?"]'
    await ran({ agents: { a: agent({ config }) }, environment: { ...environment, ...secret, ...lang } })
    const { FAKE_NAME: _, MILLRACE_PROCESS: mark, ...env } = reports()[0]!.env
    expect(mark).toMatch(/^[0-9a-f-]{36}$/u)
    expect(env).toEqual({ ...environment, ...lang, ANTHROPIC_API_KEY: 'sk-two' })
  })

  test('1 MB of stderr blocks nothing, and comes as output lines in order', async () => {
    const { agent, environment } = installFakes()
    const { outcome, entries } = await ran({ agents: { a: agent({ mode: 'stderr' }) }, environment })
    expect(outcome).toBe('completed')
    const lines = only(entries, 'cli-output').filter(({ stream }) => stream === 'stderr')
    expect(lines).toHaveLength(1024)
    expect(new Set(lines.map(({ raw }) => raw))).toEqual(new Set(['e'.repeat(1023)]))
  })

  test.skipIf(!hasProcessTable).each(['silent', 'ignore-term', 'grandchild', 'far-grandchild'])(
    'stopped: no process is left of %s',
    async (mode) => {
      const { agent, environment, dir } = installFakes()
      const latch = await startLatch()
      const engine = engineOf({ agents: { a: agent({ mode, latch: latch.url }) }, environment })
      const run = await engine.runtime.start('a', input)
      for (let i = 0; i < 5; i++) await latch.open(i)
      await latch.reached('silent')
      expect(processesWith(dir)).toHaveLength(mode.endsWith('grandchild') ? 2 : 1)
      await run.stop()
      expect((await run.result).outcome).toBe('aborted')
      await untilGone(dir)
      await entriesOf(engine.store, run.id)
    },
  )

  test.skipIf(!hasProcessTable)('a runtime that closes leaves no process', async () => {
    const { agent, environment, dir } = installFakes()
    const latch = await startLatch()
    const engine = createEngine({ agents: { a: agent({ mode: 'far-grandchild', latch: latch.url }) }, environment })
    await engine.runtime.start('a', input)
    for (let i = 0; i < 5; i++) await latch.open(i)
    await latch.reached('silent')
    await engine.close()
    expect(processesWith(dir)).toEqual([])
  })

  test('while the log is behind, its output is not read: a flood waits', { timeout: 30_000 }, async () => {
    const { agent, environment, dir } = installFakes()
    const held = Promise.withResolvers<void>()
    const engine = engineOf({
      agents: { a: agent({ mode: 'flood', top: 'limits: { answerChars: 1000000000 }' }) },
      environment,
      wrapStore: (store) => ({
        ...store,
        log: {
          ...store.log,
          async append(run, epoch, given, view) {
            const entries = taken(given)
            // The run and its step are stored; what the program writes is not.
            if (entries.some(({ type }) => type === 'stream-start')) await held.promise
            return store.log.append(run, epoch, entries, view)
          },
        },
      }),
    })
    const run = await engine.runtime.start('a', input)
    const written = () => {
      try {
        return Number(readFileSync(join(dir, 'report.ndjson.flood'), 'utf8'))
      } catch {
        return 0
      }
    }
    // 200 MB are written in less than two seconds if nobody waits. It has stopped when a second brings nothing new.
    let before = -1
    while (written() === 0 || before !== written()) {
      before = written()
      await new Promise((resolve) => setTimeout(resolve, 1000))
    }
    held.resolve()
    expect(before).toBeGreaterThan(0)
    expect(before).toBeLessThan(20)
    await run.stop()
    expect((await run.result).outcome).toBe('aborted')
  })

  test('while it runs its process is recorded, and not after it', async () => {
    const { agent, environment, reports } = installFakes()
    const latch = await startLatch()
    const engine = engineOf({ agents: { a: agent({ latch: latch.url }) }, environment })
    const run = await engine.runtime.start('a', input)
    await latch.reached(0)
    const folder = join(engine.dir, 'processes')
    const [file] = readdirSync(folder)
    const record = JSON.parse(readFileSync(join(folder, file!), 'utf8')) as object
    expect(record).toMatchObject({ pid: reports()[0]!.pid, run: run.id, step: 'main/code' })
    latch.openAll()
    expect((await run.result).outcome).toBe('completed')
    expect(readdirSync(folder)).toEqual([])
  })

  test('the budget stops it with the message that passes it; what it has cost counts', async () => {
    const { agent, environment } = installFakes()
    const latch = await startLatch()
    const config = 'budget: { usd: 0.0005 }\nmodel: sonnet'
    const engine = engineOf({
      agents: { a: agent({ config, latch: latch.url }) },
      environment,
      pricing: { sonnet: { input: 3, output: 15 } },
    })
    const run = await engine.runtime.start('a', input)
    // The first message has 140 input tokens and 20 output tokens: 0.00072 USD.
    const passes = (async () => {
      for (let i = 0; ; i++) await latch.open(i)
    })()
    void passes
    const { outcome } = await run.result
    expect(outcome).toBe('budget-exceeded')
    const entries = await entriesOf(engine.store, run.id)
    const text = only(entries, 'text-delta').map(({ delta }) => delta)
    expect(text.join('')).toBe('I will read it.')
    expect(only(entries, 'run-end')[0]!.cost).toBeCloseTo(0.00072, 8)
  })

  test.each(['codex', 'gemini'])('%s reports only at its end: an estimate stops it before, and counts', async (cli) => {
    const { agent, environment } = installFakes()
    const latch = await startLatch()
    const engine = engineOf({
      agents: { a: agent({ cli, config: 'budget: { tokens: 6 }', latch: latch.url }) },
      environment,
    })
    const run = await engine.runtime.start('a', input)
    void (async () => {
      for (let i = 0; ; i++) await latch.open(i)
    })()
    const { outcome, usage } = await run.result
    expect(outcome).toBe('budget-exceeded')
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'text-delta').map(({ delta }) => delta)).toEqual(['I will read it.'])
    // "Look at it." and "I will read it.", 4 characters a token.
    expect(usage).toEqual({ inputTokens: 3, outputTokens: 4, totalTokens: 7, source: 'estimated' })
  })

  test('an answer that is complete is not thrown away because its last report passes the budget', async () => {
    const { agent, environment } = installFakes()
    const { outcome, usage } = await ran({
      agents: { a: agent({ cli: 'codex', config: 'budget: { tokens: 200 }' }) },
      environment,
    })
    expect(outcome).toBe('completed')
    expect(usage).toMatchObject({ totalTokens: 280, source: 'reported' })
  })

  test('a budget of money needs the price of the model', async () => {
    const { agent, environment, reports } = installFakes()
    const { error } = await ran({ agents: { a: agent({ config: 'budget: { usd: 1 }' }) }, environment })
    expect(error).toMatchObject({ code: 'unknown-price' })
    expect(reports()).toEqual([])
  })

  test.each([
    ['..', 'out of the folder'],
    ['../../etc', 'out of the folder'],
    ['/etc', 'not a folder'],
    ['link', 'out of the folder'],
    ['none', 'not a folder'],
  ])('a request cannot choose a folder outside: %s', async (project, message) => {
    const { agent, environment, dir, reports } = installFakes()
    mkdirSync(join(dir, 'work/inside'), { recursive: true })
    symlinkSync('/', join(dir, 'work/link'))
    const yaml = agent().replace(/cwd: .*/u, `cwd: ${JSON.stringify(`${dir}/work/$input.project`)}`)
    const engine = engineOf({ agents: { a: yaml }, environment })
    const good = await engine.runtime.start('a', { ...input, project: 'inside' })
    expect((await good.result).outcome).toBe('completed')
    expect(reports()[0]!.cwd).toBe(join(dir, 'work/inside'))
    const bad = await engine.runtime.start('a', { ...input, project })
    const { error } = await bad.result
    expect(error).toMatchObject({ code: 'bad-input', status: 400 })
    expect(error!.message).toContain(message)
    expect(error!.message).not.toContain(dir)
    expect(reports()).toHaveLength(1)
  })

  test('a relative folder begins where the server was started', async () => {
    const { agent, environment, reports } = installFakes()
    const yaml = agent().replace(/cwd: .*/u, 'cwd: test/$input.project')
    const engine = engineOf({ agents: { a: yaml }, environment })
    for (const project of ['engine', '..']) await (await engine.runtime.start('a', { ...input, project })).result
    expect(reports().map(({ cwd }) => cwd)).toEqual([join(process.cwd(), 'test/engine')])
  })

  test(
    'a crash behind any entry: the step begins again if the agent recovers, else the run is interrupted',
    { timeout: 60_000 },
    async () => {
      const { agent, environment, reports } = installFakes()
      const yaml = (recover: boolean) => ({ a: agent({ top: `recover: ${recover}\nreturn: "$done"` }) })
      const { entries } = await ran({ agents: yaml(true), environment })
      const places = ['step-start', 'session-info', 'text-delta', 'tool-call', 'tool-result', 'finish'].map(
        (type) => entries.findIndex((entry) => entry.type === type && entry.step !== '') + 1,
      )
      for (const k of places) {
        const before = reports().length
        const engine = await cutAfter(entries, k, { agents: yaml(true), environment })
        onTestFinished(() => engine.close())
        await engine.runtime.recover()
        const { runId } = entries[0] as EntryOf<'run-start'>
        await eventually(() => engine.runtime.active === 0)
        const found = await entriesOf(engine.store, runId)
        const end = only(found, 'run-end')[0]!
        expect(end.outcome, `after ${k}`).toBe('completed')
        expect(end.output).toMatchObject({ text: 'It is fine: ü🌊.', toolCalls: [{ toolName: 'Read' }], exitCode: 0 })
        expect(only(found, 'step-reset')).toMatchObject([{ step: 'main/code', attempt: 1 }])
        expect(reports()).toHaveLength(before + 1)
      }
      // The step had finished: its value comes from the log.
      const done = entries.findIndex(({ type, step }) => type === 'step-finish' && step === 'main/code') + 1
      const before = reports().length
      const late = await cutAfter(entries, done, { agents: yaml(true), environment })
      onTestFinished(() => late.close())
      await late.runtime.recover()
      await eventually(() => late.runtime.active === 0)
      const { runId } = entries[0] as EntryOf<'run-start'>
      const found = await entriesOf(late.store, runId)
      expect(only(found, 'run-end')[0]!.output).toEqual(only(entries, 'run-end')[0]!.output)
      expect(reports()).toHaveLength(before)

      const cut = entries.slice(0, places[2]).map((entry) => ({ ...entry }))
      ;(cut[0] as EntryOf<'run-start'>).pipeline = yaml(false).a
      const never = await cutAfter(cut, cut.length, { agents: yaml(false), environment })
      onTestFinished(() => never.close())
      await never.runtime.recover()
      await eventually(() => never.runtime.active === 0)
      expect(only(await entriesOf(never.store, runId), 'run-end')[0]!.outcome).toBe('interrupted')
      expect(reports()).toHaveLength(before)
    },
  )
})

/** Quotas of tokens and USD: counted once from the log, whatever is killed when, and runs that cross one. */
import { rmSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { bookOf, sumKey, windowOf } from '../../src/access/quota-windows.ts'
import { createQuotas, type Quotas } from '../../src/access/quotas.ts'
import type { Entry } from '../../src/part/entry.ts'
import type { Appended, Store } from '../../src/part/log.ts'
import type { RunUser } from '../../src/part/principal.ts'
import type { QuotasConfig } from '../../src/part/quota.ts'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { createLimits } from '../../src/store/limits.ts'
import { agent, createEngine, entriesOf, newFolder, only, taken, until, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { placesOf } from '../support/thorough.ts'

const user: RunUser = { id: 'u1', tenant: 'acme', key: 'ci' }
const principal = { ...user, roles: ['user'] as const }
const input = { messages: [{ role: 'user', content: 'Hi' }] }

function openQuotas(config: QuotasConfig, options: EngineOptions, { wrap = (store: Store) => store } = {}) {
  let quotas: Quotas | undefined
  const clock = { ahead: 0 }
  const engine = createEngine({
    ...options,
    openAccount: (run) => quotas!.openAccount?.(run),
    wrapStore(own) {
      const store = wrap(own)
      const now = () => Date.now() + clock.ahead
      quotas = createQuotas({ config, ledger: store.ledger!, limits: createLimits(), now })
      return store
    },
  })
  return { engine, quotas: quotas!, clock, start: (id = 'a') => engine.runtime.start(id, input, { user }) }
}

function opened(...given: Parameters<typeof openQuotas>) {
  const all = openQuotas(...given)
  onTestFinished(() => all.engine.close())
  return all
}

/** What the ledger should have of a user: the usage in the log, by the windows of its entries. */
function expected(entries: readonly Entry[], holder: string): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { timestamp, usage } of only(entries, 'usage')) {
    for (const window of ['day', 'month'] as const) {
      const key = sumKey({ name: 'tokensPerDay', unit: 'tokens', window }, windowOf(window, timestamp).start, holder)
      sums.set(key, (sums.get(key) ?? 0) + usage.totalTokens!)
    }
  }
  return sums
}

const many = { tokensPerDay: 1_000_000, tokensPerMonth: 1_000_000 }
const all = { perUser: many, perTenant: many, perKey: many }
const holders = ['user:u1', 'tenant', 'key:ci']

async function expectCounted(store: Store, runs: readonly (readonly Entry[])[]): Promise<void> {
  for (const holder of holders) {
    const sums = new Map<string, number>()
    for (const entries of runs) {
      for (const [key, sum] of expected(entries, holder)) sums.set(key, (sums.get(key) ?? 0) + sum)
    }
    expect(await store.ledger!.read(bookOf(user), [...sums.keys()])).toEqual([...sums.values()])
  }
}

const toolAnswer = () =>
  createTold((prompt): ScriptStep[] =>
    resultsIn(prompt).size === 0
      ? [text('Let me ', 'see.'), toolCall('c1', 'work', { n: 1 }), finish('tool-calls')]
      : [text('Done', '.'), finish()],
  )
const work = { parameters: z.looseObject({}), execute: () => 'worked' }

/**
 * A process that is killed at a point: before or after its k-th write to the log or to the ledger is applied. From then on it does nothing, and no
 * promise settles.
 */
function killedAt(k: number) {
  const state = { points: 0, isDead: false }
  const death = Promise.withResolvers<void>()
  const forever = new Promise<never>(() => undefined)
  const point = () => {
    if (!state.isDead && ++state.points === k) {
      state.isDead = true
      death.resolve()
    }
    return state.isDead
  }
  async function around<T>(write: () => Promise<T>): Promise<T> {
    if (point()) return forever
    const result = await write()
    return point() ? forever : result
  }
  const wrap = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      // Each entry by itself, so that there is a kill between any two.
      async append(run, epoch, given) {
        let how: Appended = 'stored'
        for (const entry of taken(given)) how = await around(() => store.log.append(run, epoch, [entry]))
        return how
      },
    },
    ledger: { ...store.ledger!, add: (...args) => around(() => store.ledger!.add(...args)) },
  })
  return { state, death: death.promise, wrap }
}

describe.each([
  ['that goes on', 'recover: true', 'completed', 0],
  ['that is ended', 'recover: false', 'interrupted', 2],
])('a run %s after a kill at any write', (_, top, outcome, from) => {
  /** Runs it in a process that is killed at a point, then in another. Returns the number of points. */
  async function kill(k: number): Promise<number> {
    const dir = newFolder()
    const options = { dir, keep: true, agents: { a: agent('tools: [work]', top) }, tools: { work } }
    const { state, death, wrap } = killedAt(k)
    const first = openQuotas(all, { ...options, scripts: { m: toolAnswer() } }, { wrap })
    await Promise.race([death, first.start().then(({ result }) => result)])
    const second = openQuotas(all, { ...options, scripts: { m: toolAnswer() } })
    await second.engine.runtime.recover()
    const [row] = await second.engine.store.runs.list()
    // If it was not killed before its first entry.
    if (row !== undefined) {
      await until(second.engine.store, row.id, ({ type }) => type === 'run-end')
      await (await second.engine.runtime.open(row.id))!.result
      const entries = await entriesOf(second.engine.store, row.id)
      await expectCounted(second.engine.store, [entries])
      expect(['completed', outcome]).toContain(only(entries, 'run-end')[0]!.outcome)
    }
    await second.engine.close()
    if (!state.isDead) await first.engine.close()
    rmSync(dir, { recursive: true, force: true })
    return state.points
  }

  test('has each of its usage entries counted once, for its user, tenant and key', async () => {
    const points = await kill(Infinity)
    // Both sides of each of some twenty entries, and of the additions.
    expect(points).toBeGreaterThan(40)
    for (const k of placesOf(points, from)) await kill(k)
  })
})

describe('counting', () => {
  test('an addition whose reply is lost, and one that fails at first, count once', async () => {
    let fails = 2
    const wrap = (store: Store): Store => ({
      ...store,
      ledger: {
        ...store.ledger!,
        async add(...args) {
          if (fails-- === 2) throw new Error('not applied')
          const sums = await store.ledger!.add(...args)
          if (fails >= 0) throw new Error('the reply is lost')
          return sums
        },
      },
    })
    const { engine, start } = opened(
      all,
      { agents: { a: agent('tools: [work]') }, tools: { work }, scripts: { m: toolAnswer() } },
      { wrap },
    )
    const run = await start()
    await run.result
    await expectCounted(engine.store, [await entriesOf(engine.store, run.id)])
    expect(fails).toBeLessThan(0)
  })

  test('a fork counts what it says itself, for who forked it', async () => {
    const { engine, start } = opened(all, {
      agents: { a: agent('tools: [work]') },
      tools: { work },
      scripts: { m: toolAnswer() },
    })
    const run = await start()
    await run.result
    const entries = await entriesOf(engine.store, run.id)
    const at = only(entries, 'step-finish').find(({ step }) => step.endsWith('/1'))!.seq
    const fork = await engine.runtime.fork(run.id, { at, user })
    await fork.result
    const own = (await entriesOf(engine.store, fork.id)).filter(({ seq }) => seq > at)
    expect(only(own, 'usage').length).toBeGreaterThan(0)
    await expectCounted(engine.store, [entries, own])
  })

  test('a run of no one, and one without quotas, ask nothing of the ledger', async () => {
    const asked = () => Promise.reject(new Error('asked'))
    const wrap = (store: Store): Store => ({ ...store, ledger: { add: asked, read: asked, mark: asked } })
    const options = { agents: { a: agent() }, scripts: { m: createTold(() => [text('Hello'), finish()]) } }
    const limited = opened(all, options, { wrap })
    const nobody = await limited.engine.runtime.start('a', input)
    expect(await nobody.result).toMatchObject({ outcome: 'completed' })
    const free = opened({ perUser: { runsPerMinute: 5 } }, options, { wrap })
    expect(free.quotas.openAccount).toBeUndefined()
    expect(await (await free.start()).result).toMatchObject({ outcome: 'completed' })
    expect(await free.quotas.admitStart(principal)).toBeUndefined()
  })
})

describe('a run that crosses a quota', () => {
  test('ends within one chunk as budget-exceeded, which names the quota, and the next start is a 429', async () => {
    const chunks = Array.from({ length: 100 }, () => 'four'.repeat(4))
    const { engine, quotas, start } = opened(
      { perUser: { tokensPerDay: 100 }, perTenant: { tokensPerDay: 1000 } },
      { agents: { a: agent() }, scripts: { m: createScriptedModel([[text(...chunks), finish()]]) } },
    )
    expect(await quotas.admitStart(principal)).toBeUndefined()
    const run = await start()
    const { outcome, error } = await run.result
    expect(outcome).toBe('budget-exceeded')
    expect(error).toMatchObject({ code: 'budget-exceeded', which: 'perUser.tokensPerDay' })
    expect(error!.message).toMatch(/quota: perUser\.tokensPerDay \(100 tokens per day \(UTC\)\)/u)
    const entries = await entriesOf(engine.store, run.id)
    const [usage] = only(entries, 'usage')
    // The chunk that crossed it is the last one.
    expect(usage!.usage.totalTokens).toBeGreaterThanOrEqual(100)
    expect(usage!.usage.totalTokens).toBeLessThan(100 + 2 * 4)
    const refused = await quotas.admitStart(principal)
    expect(refused).toMatchObject({ code: 'quota-exceeded', status: 429, which: 'perUser.tokensPerDay' })
    const { end } = windowOf('day', usage!.timestamp)
    expect(Math.abs(refused!.retryAfter! - (end - Date.now()) / 1000)).toBeLessThan(60)
    expect(await quotas.admitStart({ ...principal, id: 'u2' })).toBeUndefined()
    // A user does not see what its tenant has used.
    expect(await quotas.usesOf({ ...principal, roles: ['operator'] })).toEqual([
      { which: 'perUser.tokensPerDay', limit: 100, used: usage!.usage.totalTokens, resetsAt: end },
      { which: 'perTenant.tokensPerDay', limit: 1000, used: usage!.usage.totalTokens, resetsAt: end },
    ])
  })

  test('at the end of a call makes no further one; money is counted as well', async () => {
    const { engine, start } = opened(
      { perKey: { usdPerMonth: 0.1 } },
      {
        agents: { a: agent('tools: [work]') },
        tools: { work },
        scripts: { m: createTold(() => [toolCall('c1', 'work'), finish('tool-calls')]) },
        pricing: { 'script:m': { input: 1, output: 20_000 } },
      },
    )
    const run = await start()
    expect(await run.result).toMatchObject({ outcome: 'budget-exceeded', error: { which: 'perKey.usdPerMonth' } })
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'prompt')).toHaveLength(1)
    expect(only(entries, 'tool-result').map(({ outcome }) => outcome)).toEqual(['aborted'])
    const again = await start()
    expect(await again.result).toMatchObject({ outcome: 'budget-exceeded', error: { which: 'perKey.usdPerMonth' } })
    expect(only(await entriesOf(engine.store, again.id), 'prompt')).toEqual([])
  })

  test('a complete answer stays complete', async () => {
    const script = [[text('Hello'), finish()]]
    const { quotas, start } = opened(
      { perUser: { tokensPerDay: 15 } },
      { agents: { a: agent() }, scripts: { m: createScriptedModel(script) } },
    )
    expect(await (await start()).result).toMatchObject({ outcome: 'completed', text: 'Hello' })
    expect(await quotas.admitStart(principal)).toMatchObject({ code: 'quota-exceeded' })
  })

  test('that another process has crossed: within a chunk, when the sums are a second old', async () => {
    const [before, after] = [latch(), latch()]
    const script = [text('one '), before, text('two '), after, text('three ', 'four '), finish()]
    const { engine, clock, start } = opened(
      { perTenant: { tokensPerMonth: 100 } },
      { agents: { a: agent() }, scripts: { m: createScriptedModel([script]) } },
    )
    const run = await start()
    await before.reached
    const { start: from, end } = windowOf('month', Date.now())
    const key = sumKey({ name: 'tokensPerMonth', unit: 'tokens', window: 'month' }, from, 'tenant')
    await engine.store.ledger!.add(bookOf(user), [{ key, amount: 100, until: end }])
    before.open()
    await after.reached
    clock.ahead = 1000
    after.open()
    const { outcome, text: said } = await run.result
    expect(outcome).toBe('budget-exceeded')
    // The sums are read beside the chunk that asks for them.
    expect(['one two three ', 'one two three four ']).toContain(said)
  })

  test('with many others on one instance: over by one chunk and the input of each, at most', async () => {
    const count = 20
    const gate = latch()
    const chunk = 'four'.repeat(5)
    const scripts = Array.from({ length: count }, () => [
      text('a'),
      gate,
      ...Array.from({ length: 50 }, () => text(chunk)),
      finish(),
    ])
    const limit = 2000
    const { engine, quotas, start } = opened(
      { perUser: { tokensPerDay: limit } },
      { agents: { a: agent() }, scripts: { m: createScriptedModel(scripts) } },
    )
    const runs = await Promise.all(Array.from({ length: count }, () => start()))
    await gate.reached
    gate.open()
    const results = await Promise.all(runs.map(({ result }) => result))
    expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(['budget-exceeded']))
    const [use] = await quotas.usesOf(principal)
    expect(use!.used).toBeGreaterThanOrEqual(limit)
    // The last chunk of each, and what rounding adds to each estimate.
    expect(use!.used).toBeLessThanOrEqual(limit + count * (5 + 2))
    let sum = 0
    for (const { id } of runs)
      for (const { usage } of only(await entriesOf(engine.store, id), 'usage')) sum += usage.totalTokens!
    expect(use!.used).toBe(sum)
  })
})

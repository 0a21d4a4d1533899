/** Random sources, chained, failed, ended, read and left in any order, beside a model that is a list. */
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createRelay, type Chained, type RelayOptions } from './relay.ts'
import { hearUnhandled, returned, shapes, watched, type Plan, type Watched } from './testing/relay-sources.ts'

const heard = hearUnhandled()
// What a failed relay waits for its sources is another test's: here time stands still.
beforeAll(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterAll(async () => {
  vi.useRealTimers()
  expect(await heard()).toEqual([])
})

type Step = { do: 'chain'; plan: Plan } | { do: 'end' | 'fail' | 'next' | 'return' | 'turn' | 'tick' }

const plan: fc.Arbitrary<Plan> = fc
  .record({
    shape: fc.constantFrom(...shapes),
    items: fc.array(fc.integer(), { maxLength: 5 }),
    breaks: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
    waits: fc.integer({ min: 0, max: 3 }),
  })
  .map(({ shape, items, breaks, waits }): Plan => {
    const end = breaks ? { error: new Error('broke') } : { value: `returned behind ${items.join()}` }
    return { shape, items, waits, ...end }
  })

const script: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: plan.map((each): Step => ({ do: 'chain', plan: each })) },
    { weight: 8, arbitrary: fc.constant<Step>({ do: 'next' }) },
    { weight: 4, arbitrary: fc.constantFrom<Step>({ do: 'turn' }, { do: 'tick' }) },
    { weight: 1, arbitrary: fc.constantFrom<Step>({ do: 'end' }, { do: 'fail' }, { do: 'return' }) },
  ),
  { maxLength: 30 },
)

interface Told {
  value?: number
  error?: unknown
  done?: true
}

interface Source extends Watched {
  plan: Plan
  chained?: Chained<unknown>
}

const failure = new Error('the producer failed')

/** Plays a script, ends it when it has not, and reads to the end. */
async function play(steps: Step[], options: RelayOptions) {
  const { sequence, chain, end, fail, signal } = createRelay<number>(options)
  const told: (Told | undefined)[] = []
  const sources: Source[] = []
  /** Those chained before the relay was closed. */
  const accepted: Source[] = []
  let closed = false
  let left = false
  /** `late`: the end may have been seen before. */
  let failed: 'in time' | 'late' | undefined

  function next(): void {
    const i = told.push(undefined) - 1
    void sequence.next().then(
      ({ done, value }) => (told[i] = done ? { done } : { value }),
      (error: unknown) => (told[i] = { error }),
    )
  }

  for (const step of steps) {
    if (step.do === 'chain') {
      const source: Source = { plan: step.plan, ...watched(step.plan) }
      void chain(source.source).then((chained) => (source.chained = chained))
      sources.push(source)
      if (!closed) accepted.push(source)
    } else if (step.do === 'next') next()
    else if (step.do === 'turn') await turn()
    else if (step.do === 'tick') await Promise.resolve()
    else {
      if (step.do === 'return') {
        left = true
        expect(await sequence.return()).toEqual({ done: true, value: undefined })
      } else if (step.do === 'fail') {
        if (!left) failed ??= closed ? 'late' : 'in time'
        fail(failure)
      } else end()
      closed = true
    }
  }
  end()
  const all = accepted.flatMap(({ plan: { items } }) => items).length
  for (let i = 0; i < all + 2; i++) next()
  const settled = () => !told.includes(undefined) && sources.every(({ chained }) => chained !== undefined)
  for (let i = 0; i < 2000 && !settled(); i++) await turn()
  // Closing waits for nobody: it may still be under way.
  for (let i = 0; i < 10; i++) await turn()
  return { told: told as Told[], sources, accepted, left, failed, signal, hung: !settled() }
}

/** All that the consumer may be told, in order, if it does not leave. */
function expected(accepted: Source[], failed: boolean): Told[] {
  const list: Told[] = []
  for (const { plan: each } of accepted) {
    list.push(...each.items.map((value) => ({ value })))
    if (each.error !== undefined) return [...list, { error: each.error }]
  }
  return failed ? [...list, { error: failure }] : list
}

/** Its answer is true, and it came to its own end or was closed: one of them, once. */
function checkEnd({ plan: { shape, value, error }, seen, chained }: Source): void {
  const own = error === undefined ? { value: returned({ shape, items: [], value }) } : { error }
  expect(chained).toEqual(chained?.accepted ? { accepted: true, ...own } : { accepted: false })
  if (shape === 'array' && error === undefined) return
  if (chained?.accepted) expect([shape, seen.ended, seen.closed]).toEqual([shape, true, 0])
  // A stream that ended when it was left has no ear for it any more.
  else if (!((shape === 'stream' || shape === 'relay') && seen.ended)) expect([shape, seen.closed]).toEqual([shape, 1])
}

describe('relay of random streams', () => {
  test.each<[string, RelayOptions]>([
    ['lazy', {}],
    ['eager', { eager: true }],
    ['eager, one item each', { eager: true, highWaterMark: 1 }],
  ])('%s: any order of calls gives what the list says; every source ends or is closed once', async (_, options) => {
    const property = fc.asyncProperty(script, async (steps) => {
      const { told, sources, accepted, left, failed, signal, hung } = await play(steps, options)
      expect(hung).toBe(false)
      const isTold = told.some(({ error }) => error === failure)
      const list = expected(accepted, failed === 'in time' || (failed === 'late' && isTold))
      const end = told.findIndex(({ done }) => done)
      expect(told.slice(0, end)).toEqual(list.slice(0, end))
      expect(told.slice(end).every(({ done }) => done)).toBe(true)
      if (!left) expect(end).toBe(list.length)

      const broken = list.some(({ error }) => error !== undefined)
      if (!left) expect(signal.aborted).toBe(broken)
      const failing = accepted.findIndex(({ plan: { error } }) => error !== undefined)
      for (const [i, source] of sources.entries()) {
        checkEnd(source)
        const isRefused = !accepted.includes(source)
        if (isRefused) expect([source.chained?.accepted, source.seen.begun]).toEqual([false, false])
        if (left || isRefused) continue
        // An eager source behind the one that breaks may have come to its own end before.
        const isBehind = failing !== -1 && i > failing
        if (!isBehind || options.eager !== true) expect([i, source.chained?.accepted]).toEqual([i, !isBehind])
      }
    })
    await fc.assert(property, { numRuns: 300 })
  })
})

/** When a relay reads its sources: on their turn, or ahead of time. */
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { createRelay } from './relay.ts'
import { hearUnhandled, readAll, shapes, watched, type Shape } from './testing/relay-sources.ts'
import { latch } from '../models/testing/scripted-model.ts'

const heard = hearUnhandled()
afterAll(async () => expect(await heard()).toEqual([]))

const failure = new Error('broke')
const counted = ['generator', 'promises', 'async', 'iterator', 'stream', 'promised'] as const

async function settle(): Promise<void> {
  for (let i = 0; i < 200; i++) await turn()
}

function endless(shape: Shape) {
  return watched({ shape, items: Array.from({ length: 10_000 }, (_, i) => i) })
}

describe('lazy', () => {
  test('a source begins on its turn, and is asked for an item when the consumer asks', async () => {
    const { sequence, chain } = createRelay<number>()
    const sources = counted.map((shape) => watched({ shape, items: [1, 2] }))
    for (const { source } of sources) void chain(source)
    const body = new ReadableStream<number>({ pull: () => {} }, { highWaterMark: 0 })
    void chain(body)
    for (const [i, { seen }] of sources.entries()) {
      await settle()
      expect(sources.map(({ seen: { begun } }) => begun)).toEqual(sources.map((_, j) => j < i))
      expect((await sequence.next()).value).toBe(1)
      await settle()
      expect(seen).toMatchObject({ read: 1, ended: false })
      expect((await sequence.next()).value).toBe(2)
      expect([seen.read, body.locked]).toEqual([2, false])
    }
    void sequence.next()
    await settle()
    expect(body.locked).toBe(true)
    await sequence.return()
  })
})

describe('2. eager', () => {
  test('sources are under way at once, and come in order whichever is ready first', async () => {
    const { sequence, chain, end } = createRelay<string>({ eager: true })
    const gates = [latch(), latch(), latch()]
    async function* source(i: number): AsyncGenerator<string> {
      gates[i]!.arrive()
      await gates[i]!.opened
      yield `${i}`
    }
    for (const i of gates.keys()) void chain(source(i))
    end()
    // The consumer has not read anything, but every source has reached its latch: they do not wait for each other.
    await Promise.all(gates.map(({ reached }) => reached))
    const first = sequence.next()
    for (const gate of gates.toReversed()) {
      gate.open()
      await settle()
    }
    expect(await first).toEqual({ done: false, value: '0' })
    expect(await readAll(sequence)).toEqual({ items: ['1', '2'] })
  })

  test.each(counted)('it is read 16 items ahead, and on as they are taken (%s)', async (shape) => {
    const { sequence, chain } = createRelay<number>({ eager: true })
    const [first, second] = [endless(shape), endless(shape)]
    void chain(first.source)
    void chain(second.source)
    await settle()
    expect([first.seen.read, second.seen.read]).toEqual([16, 16])
    for (let i = 0; i < 100; i++) expect(await sequence.next()).toEqual({ done: false, value: i })
    await settle()
    expect([first.seen.read, second.seen.read]).toEqual([116, 16])
    await sequence.return()
    await settle()
    expect([first.seen.closed, first.seen.read]).toEqual([1, 116])
  })

  test.each([1, 3])('highWaterMark: %i', async (highWaterMark) => {
    const { sequence, chain, end } = createRelay<number>({ eager: true, highWaterMark })
    const items = Array.from({ length: 50 }, (_, i) => i)
    const sources = shapes.map((shape) => watched({ shape, items, waits: 1 }))
    for (const { source } of sources) void chain(source)
    end()
    await settle()
    expect(sources.every(({ seen: { read } }) => read <= highWaterMark)).toBe(true)
    expect(await readAll(sequence)).toEqual({ items: shapes.flatMap(() => items) })
  })

  test.each([0, -1, 1.5, Number.NaN, Infinity, '16'])('highWaterMark: %s is refused', (highWaterMark) => {
    expect(() => createRelay({ eager: true, highWaterMark: highWaterMark as number })).toThrow(
      expect.objectContaining({ name: 'MillraceError', code: 'bad-value' }),
    )
  })

  test('at most 64 sources are read ahead, so that what waits is bounded for any number of them', async () => {
    const { sequence, chain, end } = createRelay<number>({ eager: true, highWaterMark: 2 })
    const sources = Array.from({ length: 200 }, (_, i) => watched({ shape: 'async', items: [i, i, i] }))
    for (const { source } of sources) void chain(source)
    end()
    const begun = () => sources.filter((source) => source.seen.begun).length
    await settle()
    expect([begun(), sources.reduce((sum, { seen: { read } }) => sum + read, 0)]).toEqual([64, 128])
    for (let i = 0; i < 31; i++) await sequence.next()
    await settle()
    expect(begun()).toBe(74)
    expect((await readAll(sequence)).items).toHaveLength(569)
  })

  test('one that breaks before its turn is told on its turn; nothing behind it is wanted from then on', async () => {
    const { sequence, chain, signal } = createRelay<number>({ eager: true })
    const gate = latch()
    void chain(
      (async function* () {
        yield 1
        await gate.opened
        yield 2
      })(),
    )
    const broken = chain(watched({ shape: 'async', items: [3], error: failure }).source)
    const behind = endless('iterator')
    const answer = chain(behind.source)
    const more = Array.from({ length: 100 }, () => ({ asked: false, closed: false }))
    for (const each of more) {
      const next = () => ((each.asked = true), new Promise<never>(() => {}))
      const leave = async () => ((each.closed = true), { done: true, value: undefined } as const)
      void chain({ [Symbol.asyncIterator]: () => ({ next, return: leave }) })
    }
    expect(await broken).toEqual({ accepted: true, error: failure })
    expect(await answer).toEqual({ accepted: false })
    const late = endless('async')
    expect(await chain(late.source)).toEqual({ accepted: false })
    expect([behind.seen.closed, late.seen.begun, signal.aborted]).toEqual([1, false, false])
    gate.open()
    expect(await readAll(sequence)).toEqual({ items: [1, 2, 3], error: failure })
    expect(signal.reason).toBe(failure)
    expect(more).toEqual(more.map((_, i) => ({ asked: i < 61, closed: true })))
  })

  test('one that fails after the consumer has left is heard by nobody', async () => {
    const { sequence, chain } = createRelay<number>({ eager: true })
    const gate = latch()
    const answers = [1, 2].map((item) =>
      chain(
        (async function* () {
          yield item
          gate.arrive()
          await gate.opened
          throw failure
        })(),
      ),
    )
    await gate.reached
    await sequence.return()
    expect(await Promise.all(answers)).toEqual([{ accepted: false }, { accepted: false }])
    gate.open()
    await settle()
  })

  test('what a source returns is known before its items are taken', async () => {
    const { sequence, chain, end } = createRelay<number>({ eager: true })
    void chain(watched({ shape: 'async', items: [1] }).source)
    expect(await chain(watched({ shape: 'async', items: [2], value: 'returned' }).source)).toEqual({
      accepted: true,
      value: 'returned',
    })
    end()
    expect(await readAll(sequence)).toEqual({ items: [1, 2] })
  })

  test('a source that leaves in the middle of its first item is read no further', async () => {
    const { sequence, chain } = createRelay<number>({ eager: true })
    let asked = 0
    let closed = 0
    const iterator: AsyncIterableIterator<number> = {
      [Symbol.asyncIterator]: () => iterator,
      next() {
        asked++
        void sequence.return()
        return Promise.resolve({ done: false, value: 1 })
      },
      return: async () => (closed++, { done: true, value: undefined }),
    }
    expect(await chain(iterator)).toEqual({ accepted: false })
    await settle()
    expect([asked, closed]).toEqual([1, 1])
  })
})

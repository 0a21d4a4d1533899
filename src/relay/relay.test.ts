/** The relay by the lines of its specification, and the faults of the sequencer that it was asked for in place of. */
import { ReadableStream } from 'node:stream/web'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, describe, expect, expectTypeOf, onTestFinished, test, vi } from 'vitest'
import { createRelay, type Chained } from './relay.ts'
import { hearUnhandled, readAll, shapes, watched } from './testing/relay-sources.ts'
import { latch } from '../models/testing/scripted-model.ts'

const heard = hearUnhandled()
afterAll(async () => expect(await heard()).toEqual([]))

const failure = new Error('broke')
const done = { done: true, value: undefined }
/** A source that says one thing and then nothing any more; it ignores that it is left. */
async function* silentBehind(...items: number[]): AsyncGenerator<number, never> {
  yield* items
  return new Promise<never>(() => {})
}

describe('1. order', () => {
  test('sources of all shapes come in the order of their chaining', async () => {
    const { sequence, chain, end } = createRelay<number>()
    shapes.forEach((shape, i) => void chain(watched({ shape, items: [i, i + 0.5], waits: shapes.length - i }).source))
    end()
    expect(await readAll(sequence)).toEqual({ items: shapes.flatMap((_, i) => [i, i + 0.5]) })
  })

  test('empty sources say nothing; a sequence of nothing ends', async () => {
    const { sequence, chain, end } = createRelay<number>()
    for (const shape of shapes) void chain(watched({ shape, items: [] }).source)
    void chain([1])
    for (const shape of shapes) void chain(watched({ shape, items: [] }).source)
    end()
    expect(await readAll(sequence)).toEqual({ items: [1] })
    const none = createRelay<number>()
    none.end()
    expect(await readAll(none.sequence)).toEqual({ items: [] })
  })

  test('sources may be chained while it waits, by the consumer, and by sources', async () => {
    const { sequence, chain, end } = createRelay<number>()
    const first = sequence.next()
    void chain(
      (function* () {
        yield 1
        void chain([3])
        yield 2
      })(),
    )
    expect(await first).toEqual({ done: false, value: 1 })
    const items: number[] = []
    for await (const item of sequence) {
      items.push(item)
      if (item === 3) void chain([4]).then(() => end())
    }
    expect(items).toEqual([2, 3, 4])
  })

  test('an item is there while its source is held behind it', async () => {
    const { sequence, chain, end } = createRelay<string>()
    const gate = latch()
    void chain(
      (async function* () {
        yield 'first'
        await gate.opened
        yield 'second'
      })(),
    )
    end()
    expect(await sequence.next()).toEqual({ done: false, value: 'first' })
    gate.open()
    expect(await readAll(sequence)).toEqual({ items: ['second'] })
  })

  test('calls of next() before there is anything are answered in order', async () => {
    const { sequence, chain, end } = createRelay<number>()
    const order: unknown[] = []
    const calls = Array.from({ length: 10_000 }, () => sequence.next().then(({ value }) => order.push(value)))
    void chain(watched({ shape: 'async', items: [0, 1, 2], waits: 2 }).source)
    void chain(Array.from({ length: 9_996 }, (_, i) => i + 3))
    end()
    await Promise.all(calls)
    expect(order).toEqual([...Array(9_999).keys(), undefined])
  })

  test('relays in relays, deep', async () => {
    let inner: AsyncIterable<number> = watched({ shape: 'iterator', items: [0] }).source as AsyncIterable<number>
    for (let depth = 1; depth <= 200; depth++) {
      const { sequence, chain, end } = createRelay<number>()
      void chain(inner)
      void chain([depth])
      end()
      inner = sequence
    }
    expect(await readAll(inner)).toEqual({ items: [...Array(201).keys()] })
  })

  test.each([
    [
      'sync',
      () =>
        (function* () {
          for (;;) yield 1
        })(),
    ],
    [
      'async',
      () =>
        (async function* () {
          for (;;) yield 1
        })(),
    ],
  ])('a source without end that never waits (%s) keeps nobody from the event loop', async (_, source) => {
    const { sequence, chain } = createRelay<number>()
    void chain<void>(source())
    let fired = false
    setTimeout(() => (fired = true), 5)
    let items = 0
    for await (const item of sequence) {
      items += item
      if (fired || items > 2_000_000) break
    }
    expect(fired).toBe(true)
  })
})

describe('3. errors', () => {
  test.each(['generator', 'promises', 'async', 'iterator', 'stream', 'promised', 'relay'] as const)(
    'what came before is delivered, the error comes once, the rest is disposed (%s)',
    async (shape) => {
      const { sequence, chain, signal } = createRelay<number>()
      const before = chain([1])
      const broken = chain(watched({ shape, items: [2, 3], error: failure }).source)
      const rest = shapes.filter((each) => each !== 'array').map((each) => watched({ shape: each, items: [4] }))
      const answers = rest.map(({ source }) => chain(source))
      const told = [sequence.next(), sequence.next(), sequence.next(), sequence.next(), sequence.next()]
      expect(await Promise.allSettled(told)).toEqual([
        { status: 'fulfilled', value: { done: false, value: 1 } },
        { status: 'fulfilled', value: { done: false, value: 2 } },
        { status: 'fulfilled', value: { done: false, value: 3 } },
        { status: 'rejected', reason: failure },
        { status: 'fulfilled', value: done },
      ])
      expect(await sequence.next()).toEqual(done)
      expect(await before).toEqual({ accepted: true, value: undefined })
      expect(await broken).toEqual({ accepted: true, error: failure })
      expect(await Promise.all(answers)).toEqual(rest.map(() => ({ accepted: false })))
      await turn()
      expect(rest.map(({ seen: { begun, closed } }) => [begun, closed])).toEqual(rest.map(() => [false, 1]))
      expect(signal.reason).toBe(failure)
    },
  )

  test('a promise that rejects before its turn is told on its turn', async () => {
    const { sequence, chain } = createRelay<number>()
    const answer = chain(silentBehind(1))
    void chain(Promise.reject(failure))
    await turn()
    expect(await sequence.next()).toEqual({ done: false, value: 1 })
    await sequence.return()
    expect(await answer).toEqual({ accepted: false })
    const other = createRelay<number>()
    void other.chain([1])
    void other.chain(Promise.reject(failure))
    await turn()
    expect(await readAll(other.sequence)).toEqual({ items: [1], error: failure })
  })

  test.each<[string, object]>([
    [
      'whose iterator cannot be had',
      {
        [Symbol.asyncIterator]: () => {
          throw failure
        },
      },
    ],
    [
      'whose next() throws',
      {
        [Symbol.asyncIterator]: () => ({
          next: () => {
            throw failure
          },
        }),
      },
    ],
    ['whose next() gives nothing', { [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve() }) }],
    ['whose sync next() gives nothing', { [Symbol.iterator]: () => ({ next: () => {} }) }],
    ['that is a promise of no source', Promise.resolve('text')],
  ])('a source %s is an error like another', async (_, source) => {
    for (const eager of [false, true]) {
      const { sequence, chain } = createRelay<number>({ eager })
      void chain([1])
      const broken = chain(source as AsyncIterable<number>)
      const { items, error } = await readAll(sequence)
      expect([items, error]).toEqual([[1], expect.any(Error)])
      expect(await broken).toEqual({ accepted: true, error })
    }
  })

  test('an error that nobody hears is no unhandled rejection', async () => {
    const { sequence, chain } = createRelay<number>()
    void chain(watched({ shape: 'async', items: [], error: failure }).source)
    void sequence.next()
    void sequence.next()
    void createRelay().sequence.throw(failure)
    createRelay().fail(failure)
    await turn()
  })
})

describe('4. leaving', () => {
  test('while it waits for the next source: next() and return() settle, and nothing chained later is begun', async () => {
    const { sequence, chain, signal } = createRelay<number>()
    const waiting = [sequence.next(), sequence.next()]
    expect(await sequence.return()).toEqual(done)
    expect(await Promise.all(waiting)).toEqual([done, done])
    expect([signal.aborted, signal.reason.name]).toEqual([true, 'AbortError'])
    const late = watched({ shape: 'async', items: [1] })
    expect(await chain(late.source)).toEqual({ accepted: false })
    expect(late.seen).toMatchObject({ begun: false, closed: 1 })
  })

  test('while a source is silent: it, and all that are queued, are closed', async () => {
    const { sequence, chain, signal } = createRelay<number>()
    const order: string[] = []
    signal.addEventListener('abort', () => order.push('signal'))
    const waits = latch()
    const current: AsyncIterable<number> = {
      [Symbol.asyncIterator]: () => ({
        next: () => (waits.arrive(), new Promise(() => {})),
        return: async () => (order.push('current'), { done: true, value: undefined }),
      }),
    }
    const queued = shapes.filter((shape) => shape !== 'array').map((shape) => watched({ shape, items: [1] }))
    const answers = [chain(current), ...queued.map(({ source }) => chain(source))]
    const waiting = sequence.next()
    await waits.reached
    expect(await sequence.return()).toEqual(done)
    expect(await waiting).toEqual(done)
    expect(await Promise.all(answers)).toEqual(answers.map(() => ({ accepted: false })))
    await turn()
    expect(queued.map(({ seen: { begun, closed } }) => [begun, closed])).toEqual(queued.map(() => [false, 1]))
    expect(order).toEqual(['signal', 'current'])
  })

  test.each<[string, (sequence: AsyncGenerator<number, void, void>) => Promise<unknown>]>([
    [
      'break',
      async (sequence) => {
        for await (const _ of sequence) break
      },
    ],
    [
      'cancel() of ReadableStream.from',
      async (sequence) => {
        const reader = ReadableStream.from(sequence).getReader()
        await reader.read()
        const waiting = reader.read()
        await reader.cancel()
        expect(await waiting).toEqual(done)
      },
    ],
    [
      'await using',
      async (sequence) => {
        await using left = sequence
        await left.next()
      },
    ],
    [
      'throw()',
      async (sequence) => {
        await sequence.next()
        await expect(sequence.throw(failure)).rejects.toBe(failure)
      },
    ],
  ])('by %s', async (_, leave) => {
    const { sequence, chain, signal } = createRelay<number>()
    void chain(silentBehind(1))
    const queued = watched({ shape: 'async', items: [1] })
    void chain(queued.source)
    await leave(sequence)
    expect([signal.aborted, queued.seen.closed]).toEqual([true, 1])
    expect(await sequence.next()).toEqual(done)
  })

  test.each<[string, () => unknown]>([
    ['never settles', () => new Promise(() => {})],
    [
      'throws',
      () => {
        throw failure
      },
    ],
    ['rejects', () => Promise.reject(failure)],
  ])('a source whose return() %s holds nobody up', async (_, close) => {
    const { sequence, chain } = createRelay<number>()
    const bad = () => ({
      [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: 1 }), return: close }),
    })
    void chain(bad() as AsyncIterable<number>)
    void chain(bad() as AsyncIterable<number>)
    const last = watched({ shape: 'iterator', items: [] })
    void chain(last.source)
    await sequence.next()
    expect(await sequence.return()).toEqual(done)
    expect(last.seen.closed).toBe(1)
  })

  test('by a source, in the middle of itself: it is closed once, as soon as it stands', async () => {
    const leaving: (() => void)[] = []
    let closed = 0
    function* generator(): Generator<number> {
      try {
        leaving.pop()!()
        yield 1
      } finally {
        closed++
      }
    }
    const iterator = {
      [Symbol.iterator]: () => iterator,
      next: () => (leaving.pop()!(), { done: false, value: 1 }),
      return: () => (closed++, { done: true, value: undefined }),
    }
    for (const source of [generator(), iterator] as Iterable<number>[]) {
      const { sequence, chain } = createRelay<number>()
      leaving.push(() => void sequence.return())
      void chain(source)
      expect(await sequence.next()).toEqual(done)
    }
    expect(closed).toBe(2)
  })

  test('an end that came by itself fires no signal', async () => {
    const { sequence, chain, signal } = createRelay<number>()
    void chain([1])
    void chain(null)
    expect(await readAll(sequence)).toEqual({ items: [1] })
    await sequence.return()
    expect(signal.aborted).toBe(false)
  })
})

describe('5. after the end', () => {
  test.each<[string, (relay: ReturnType<typeof createRelay<number>>) => unknown]>([
    ['end()', ({ end }) => end()],
    ['chain(null)', ({ chain }) => chain(null)],
    ['fail()', ({ fail }) => fail(failure)],
    ['return()', ({ sequence }) => sequence.return()],
    ['throw()', ({ sequence }) => sequence.throw(failure).catch(() => {})],
  ])('of %s what is chained is disposed and not accepted', async (_, close) => {
    const relay = createRelay<number>()
    await close(relay)
    const late = shapes.filter((shape) => shape !== 'array').map((shape) => watched({ shape, items: [1] }))
    expect(await Promise.all(late.map(({ source }) => relay.chain(source)))).toEqual(
      late.map(() => ({ accepted: false })),
    )
    expect(await relay.chain(null)).toEqual({ accepted: false })
    await turn()
    expect(late.map(({ seen: { begun, closed } }) => [begun, closed])).toEqual(late.map(() => [false, 1]))
    expect((await readAll(relay.sequence)).items).toEqual([])
  })

  test('fail() answers a consumer that waits for the next source', async () => {
    const { sequence, fail, signal } = createRelay<number>()
    const waiting = sequence.next()
    fail(failure)
    fail(new Error('a second one'))
    await expect(waiting).rejects.toBe(failure)
    expect(await sequence.next()).toEqual(done)
    expect(signal.reason).toBe(failure)
  })

  test('fail() before anybody reads comes behind what was chained', async () => {
    const { sequence, chain, fail } = createRelay<number>()
    for (const shape of shapes) void chain(watched({ shape, items: [1] }).source)
    fail(failure)
    fail(new Error('a second one'))
    expect(await readAll(sequence)).toEqual({ items: shapes.map(() => 1), error: failure })
  })

  test('fail() behind end() is told, as long as the end is not', async () => {
    const { sequence, chain, end, fail } = createRelay<number>()
    void chain([1])
    end()
    fail(failure)
    expect(await readAll(sequence)).toEqual({ items: [1], error: failure })
    fail(new Error('nobody is there'))
    expect(await sequence.next()).toEqual(done)
  })

  test.each([
    [false, 'before'],
    [false, 'while'],
    [true, 'before'],
    [true, 'while'],
  ])('fail() keeps nobody waiting for a source that is silent (eager: %s; %s it is read)', async (eager, when) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { sequence, chain, fail, signal } = createRelay<number>({ eager })
    const silent = chain(silentBehind(1))
    await sequence.next()
    if (when === 'before') fail(failure)
    const told = vi.fn<(error: unknown) => void>()
    sequence.next().catch(told)
    if (when === 'while') fail(failure)
    await vi.advanceTimersByTimeAsync(299)
    expect([told.mock.calls, signal.aborted]).toEqual([[], false])
    await vi.advanceTimersByTimeAsync(1)
    expect([told.mock.calls, signal.reason]).toEqual([[[failure]], failure])
    expect(await silent).toEqual({ accepted: false })
    expect([await sequence.next(), vi.getTimerCount()]).toEqual([done, 0])
  })

  test('fail() takes nothing from a consumer that is slow, or from a source that still speaks', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { sequence, chain, fail } = createRelay<number>()
    void chain(watched({ shape: 'async', items: [1, 2, 3], waits: 3 }).source)
    fail(failure)
    const items: unknown[] = []
    for (let i = 0; i < 3; i++) {
      await vi.advanceTimersByTimeAsync(10_000)
      items.push((await sequence.next()).value)
    }
    expect(items).toEqual([1, 2, 3])
    await expect(sequence.next()).rejects.toBe(failure)
  })

  test('a second consumer is refused; the first may iterate what it has', async () => {
    const { sequence, chain, end } = createRelay<number>()
    void chain([1, 2, 3, 4])
    end()
    expect((await sequence.next()).value).toBe(1)
    const reader = sequence[Symbol.asyncIterator]()
    expect((await reader.next()).value).toBe(2)
    expect(() => sequence[Symbol.asyncIterator]()).toThrow(
      expect.objectContaining({
        name: 'MillraceError',
        code: 'already-read',
        message: expect.stringContaining('once'),
      }),
    )
    expect((await readAll(sequence)).error).toMatchObject({ code: 'already-read' })
    expect(await readAll(reader)).toEqual({ items: [3, 4] })
  })

  test('a relay in itself is refused', () => {
    const { sequence, chain } = createRelay<number>()
    expect(() => chain(sequence)).toThrow(expect.objectContaining({ code: 'bad-source' }))
    expect(() => chain(sequence[Symbol.asyncIterator]())).toThrow(expect.objectContaining({ code: 'bad-source' }))
  })
})

describe('6. what chain() answers', () => {
  test('the value that a source returns, so that one phase gives it to the next', async () => {
    const { sequence, chain, end, fail } = createRelay<string>()
    async function* draft(): AsyncGenerator<string, number> {
      yield 'draft'
      return 41
    }
    function* review(given: number): Generator<string, Date> {
      yield `review of ${given}`
      return new Date(given)
    }
    async function produce(): Promise<void> {
      const first = await chain(draft())
      expectTypeOf(first).toEqualTypeOf<Chained<number>>()
      if (first.value === undefined) return
      const second = await chain(review(first.value + 1))
      expectTypeOf(second.value).toEqualTypeOf<Date | undefined>()
      await chain([`at ${second.value?.getTime()}`])
      end()
    }
    produce().catch(fail)
    expect(await readAll(sequence)).toEqual({ items: ['draft', 'review of 42', 'at 42'] })
  })

  test('a producer that throws is an error of the sequence', async () => {
    const { sequence, chain, fail } = createRelay<string>()
    async function produce(): Promise<void> {
      await chain(['before'])
      throw failure
    }
    produce().catch(fail)
    expect(await readAll(sequence)).toEqual({ items: ['before'], error: failure })
  })

  test.each(shapes)('the answer for %s', async (shape) => {
    const { sequence, chain } = createRelay<number>()
    const answer = chain(watched({ shape, items: [1], value: 'returned' }).source)
    const ended = chain(null)
    await readAll(sequence)
    const value = ['array', 'stream', 'relay'].includes(shape) ? undefined : 'returned'
    expect([await answer, await ended]).toEqual([{ accepted: true, value }, { accepted: true }])
  })
})

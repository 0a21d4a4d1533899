/** Relay sources of every shape for tests. They record how they were used. */
import { setImmediate as turn } from 'node:timers/promises'
import { createRelay, type Chainable } from '../relay.ts'

export const shapes = ['array', 'generator', 'promises', 'async', 'iterator', 'stream', 'promised', 'relay'] as const
export type Shape = (typeof shapes)[number]

export interface Plan {
  shape: Shape
  items: readonly number[]
  /** After its items, the source throws `error` or returns `value`. */
  error?: Error
  value?: string
  /** Event loop turns to wait before each item and before the end, for asynchronous shapes. */
  waits?: number
}

/** `closed`: calls of `return()` or `cancel()`. `ended`: whether it reached its end or error. `read`: items read from it. */
export interface Watched {
  source: Chainable<number, string | undefined> | PromiseLike<Chainable<number, string | undefined>>
  seen: { begun: boolean; closed: number; ended: boolean; read: number }
}

export function watched(plan: Plan): Watched {
  const seen = { begun: false, closed: 0, ended: false, read: 0 }
  return { source: shaped(plan, seen), seen }
}

/** The expected return value. Streams, arrays and relays have none. */
export function returned({ shape, value }: Plan): string | undefined {
  return shape === 'stream' || shape === 'array' || shape === 'relay' ? undefined : value
}

function shaped(plan: Plan, seen: Watched['seen']): Watched['source'] {
  const { shape, items, error } = plan
  switch (shape) {
    case 'array':
      return error === undefined ? [...items] : noteClose(sync(plan, seen), seen)
    case 'generator':
      return noteClose(sync(plan, seen), seen)
    case 'promises':
      return noteClose(promising(plan, seen), seen)
    case 'async':
      return noteClose(slow(plan, seen), seen)
    case 'promised':
      return turn(undefined).then(() => noteClose(slow(plan, seen), seen))
    case 'iterator':
      return byHand(slow(plan, seen), seen)
    case 'stream':
      return toStream(slow(plan, seen), seen)
    case 'relay': {
      const { sequence, chain, end, signal } = createRelay<number>()
      void chain(slow({ ...plan, items: items.slice(0, 1), error: undefined }, { ...seen }))
      void chain(slow({ ...plan, items: items.slice(1) }, seen))
      end()
      signal.addEventListener('abort', () => {
        if (signal.reason !== error) seen.closed++
      })
      return sequence as AsyncIterable<number, undefined>
    }
  }
}

function* sync({ items, error, value }: Plan, seen: Watched['seen']): Generator<number, string | undefined> {
  seen.begun = true
  for (const item of items) {
    seen.read++
    yield item
  }
  seen.ended = true
  if (error !== undefined) throw error
  return value
}

function* promising(
  { items, error, value }: Plan,
  seen: Watched['seen'],
): Generator<Promise<number>, string | undefined> {
  seen.begun = true
  for (const item of items) {
    seen.read++
    yield turn(item)
  }
  seen.ended = true
  if (error !== undefined) throw error
  return value
}

async function* slow({ items, error, value, waits = 0 }: Plan, seen: Watched['seen']) {
  seen.begun = true
  for (const item of items) {
    for (let i = 0; i < waits; i++) await turn()
    seen.read++
    yield item
  }
  for (let i = 0; i < waits; i++) await turn()
  seen.ended = true
  if (error !== undefined) throw error
  return value
}

/** Counts calls of `return()`, because a generator that was never started does not run its `finally`. */
function noteClose<G extends { return(value: never): unknown }>(generator: G, seen: { closed: number }): G {
  const close = generator.return.bind(generator)
  generator.return = (value: never) => {
    seen.closed++
    return close(value)
  }
  return generator
}

/** An iterable whose iterator has only `next` and `return`. */
function byHand<R>(inner: AsyncGenerator<number, R>, seen: Watched['seen']): AsyncIterable<number, R> {
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => inner.next(),
      return: (value) => {
        seen.closed++
        return inner.return(value as R)
      },
    }),
  }
}

function toStream(inner: AsyncGenerator<number>, seen: Watched['seen']): ReadableStream<number> {
  return new ReadableStream<number>(
    {
      async pull(controller) {
        const { done, value } = await inner.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel() {
        seen.closed++
      },
    },
    { highWaterMark: 0 },
  )
}

/** Collects unhandled rejections while tests run: `expect(await heard()).toEqual([])` in `afterAll`. */
export function hearUnhandled(): () => Promise<unknown[]> {
  const unhandled: unknown[] = []
  const note = (error: unknown) => unhandled.push(error)
  process.on('unhandledRejection', note)
  return async () => {
    await turn()
    process.off('unhandledRejection', note)
    return unhandled
  }
}

/** All items of a sequence, and the error that ended it. */
export async function readAll<T>(sequence: AsyncIterable<T>): Promise<{ items: T[]; error?: unknown }> {
  const items: T[] = []
  try {
    for await (const item of sequence) items.push(item)
  } catch (error) {
    return { items, error }
  }
  return { items }
}

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import type { LogCursor } from '../part/log.ts'
import { createNotifier } from './notifier.ts'
import { follow, type Pulled } from './follow.ts'

function source() {
  const values: number[] = []
  const bell = createNotifier()
  const paused: (() => void)[] = []
  const reader = (pull: () => Pulled<number>, signal: AbortSignal | undefined = new AbortController().signal) =>
    follow({ start: () => ({ pull }), bell, key: 'k', signal, pause: (go) => paused.push(go) })[Symbol.asyncIterator]()
  const shift = (): Pulled<number> => (values.length > 0 ? { value: values.shift()! } : 'wait')
  return { values, bell, paused, reader, shift }
}

describe('following a log', () => {
  test('ten thousand readers that wait and leave leave nothing behind', async () => {
    const { bell, reader } = source()
    const readers = Array.from({ length: 10_000 }, () => reader(() => 'wait'))
    const waiting = readers.map((r) => r.next())
    expect(bell.waiting).toBe(10_000)
    for (const r of readers) await r.return?.()
    expect(bell.waiting).toBe(0)
    expect(await Promise.all(waiting)).toEqual(readers.map(() => ({ value: undefined, done: true })))
  })

  test('without a signal it ends with what there is', async () => {
    const { bell, values, shift } = source()
    values.push(1, 2)
    const got: number[] = []
    for await (const value of follow({ start: () => ({ pull: shift }), bell, key: 'k', pause: (go) => go() }))
      got.push(value)
    expect(got).toEqual([1, 2])
    expect(bell.waiting).toBe(0)
  })

  test('an abort takes the wait back', async () => {
    const { bell, reader } = source()
    const controller = new AbortController()
    const next = reader(() => 'wait', controller.signal).next()
    expect(bell.waiting).toBe(1)
    controller.abort()
    expect(bell.waiting).toBe(0)
    expect(await next).toMatchObject({ done: true })
  })

  test('a ring that brings nothing is waited out', async () => {
    const { values, bell, reader, shift } = source()
    const next = reader(shift).next()
    bell.notify('other')
    bell.notify('k')
    expect(bell.waiting).toBe(1)
    values.push(7)
    bell.notify('k')
    expect(await next).toEqual({ value: 7, done: false })
  })

  test('calls of next that do not wait for each other get one value each, in order', async () => {
    const { values, bell, reader, shift } = source()
    const r = reader(shift)
    const both = [r.next(), r.next(), r.next()]
    values.push(1, 2, 3)
    bell.notify('k')
    expect((await Promise.all(both)).map(({ value }) => value)).toEqual([1, 2, 3])
  })

  test('lets other work go first between stored pages, also when it is left meanwhile', async () => {
    const { paused, reader } = source()
    const r = reader(() => ({ value: 1, stored: true }))
    expect(await r.next()).toMatchObject({ value: 1 })
    expect(paused).toHaveLength(0)
    const second = r.next()
    expect(paused).toHaveLength(1)
    paused[0]!()
    expect(await second).toMatchObject({ value: 1 })
    const third = r.next()
    await r.return?.()
    paused[1]!()
    expect(await third).toMatchObject({ done: true })
  })

  test('an error of the source rejects once and ends it', async () => {
    const { bell, reader } = source()
    let broken = false
    const r = reader(() => {
      if (broken) throw new Error('broken')
      return 'wait'
    })
    const next = r.next()
    broken = true
    bell.notify('k')
    await expect(next).rejects.toThrow('broken')
    expect(await r.next()).toMatchObject({ done: true })
    expect(bell.waiting).toBe(0)
  })

  /** Takes once, and notes what it is told. */
  function takeFrom(cursor: LogCursor<number>, told: unknown[]): void {
    cursor.take!(
      ({ done, value }) => told.push(done === true ? 'done' : value),
      (error) => told.push(error),
    )
  }

  test('take calls back once for each value, never before its caller has returned, and takes turns with next', async () => {
    const { values, bell, reader, shift } = source()
    const cursor = reader(shift) as LogCursor<number>
    const told: unknown[] = []
    values.push(1)
    takeFrom(cursor, told)
    expect(told).toEqual([])
    await Promise.resolve()
    expect(told).toEqual([1])
    takeFrom(cursor, told)
    await Promise.resolve()
    values.push(2, 3)
    bell.notify('k')
    expect(told).toEqual([1])
    await Promise.resolve()
    expect(told).toEqual([1, 2])
    expect(await cursor.next()).toEqual({ value: 3, done: false })
    values.push(4)
    takeFrom(cursor, told)
    expect(told).toEqual([1, 2])
    await Promise.resolve()
    expect(told).toEqual([1, 2, 4])
    takeFrom(cursor, told)
    await cursor.return!()
    await Promise.resolve()
    takeFrom(cursor, told)
    await Promise.resolve()
    expect(told).toEqual([1, 2, 4, 'done', 'done'])
    expect(bell.waiting).toBe(0)
  })

  test('take tells of an abort while it waits, of a failed pull, and then of the end', async () => {
    const { bell, reader } = source()
    const controller = new AbortController()
    const told: unknown[] = []
    takeFrom(reader(() => 'wait', controller.signal) as LogCursor<number>, told)
    controller.abort()
    expect(told).toEqual([])
    await Promise.resolve()
    expect(told).toEqual(['done'])
    const error = new Error('broken')
    const failing = reader(() => {
      throw error
    }) as LogCursor<number>
    takeFrom(failing, told)
    await Promise.resolve()
    takeFrom(failing, told)
    await Promise.resolve()
    expect(told).toEqual(['done', error, 'done'])
    expect(bell.waiting).toBe(0)
  })

  test.each(['next', 'take'] as const)(
    'between two calls of %s a cursor holds nothing of the last value',
    async (how) => {
      setFlagsFromString('--expose-gc')
      const collect = runInNewContext('gc') as () => void
      const bell = createNotifier()
      const pull = (): Pulled<object> => ({ value: { big: true } })
      const { signal } = new AbortController()
      const cursor = follow({ start: () => ({ pull }), bell, key: 'k', signal, pause: (go) => go() })[
        Symbol.asyncIterator
      ]()
      const given = await (how === 'next'
        ? cursor.next().then(({ value }) => new WeakRef(value as object))
        : new Promise<WeakRef<object>>((resolve, reject) => {
            ;(cursor as LogCursor<object>).take!(({ value }) => resolve(new WeakRef(value as object)), reject)
          }))
      // A WeakRef holds what it refers to until the turn of the event loop is over.
      await new Promise(setImmediate)
      collect()
      expect(given.deref()).toBeUndefined()
      expect(await cursor.next()).toMatchObject({ value: { big: true } })
    },
  )
})

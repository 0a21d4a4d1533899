import { describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import { cutAt, endEntry, exampleRun, startEntry } from '../store/example-run.contract.ts'
import { memoryStore } from '../store/memory-store.ts'
import { createRunReader, type RunReader } from './run-reader.ts'

async function rest(reader: RunReader): Promise<Entry[]> {
  const entries: Entry[] = []
  for (;;) {
    const { done, value } = await reader.next()
    if (done) return entries
    entries.push(...value)
  }
}

/** The same with `take`. */
async function taken(reader: RunReader): Promise<Entry[]> {
  const entries: Entry[] = []
  for (;;) {
    const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<RunReader['next']>>>()
    reader.take(resolve, reject)
    const { done, value } = await promise
    if (done) return entries
    entries.push(...value)
  }
}

/** A log that counts how often it is read, and one run in it. */
function counted() {
  const { log } = memoryStore()
  const seen = { reads: 0 }
  const read: typeof log.read = (...args) => {
    const entries = log.read(...args)
    return { [Symbol.asyncIterator]: () => (seen.reads++, entries[Symbol.asyncIterator]()) }
  }
  return { log: { ...log, read }, seen }
}

describe('createRunReader', () => {
  test('what was looked at is given again, and read once', async () => {
    const { log, seen } = counted()
    const entries = exampleRun('r', 20)
    const reader = createRunReader(log, 'r')
    const [first, second, ...batches] = cutAt(entries, [1, 4, 11])
    await log.append('r', 1, first!)
    expect((await reader.peek()).value).toEqual(first)
    const waited = reader.peek()
    await log.append('r', 1, second!)
    expect((await waited).value).toEqual(second)
    for (const batch of batches) await log.append('r', 1, batch)
    expect(await rest(reader)).toEqual(entries)
    expect(seen.reads).toBe(1)
  })

  test.each(['with take', 'without take'])(
    'what is taken is what next gives, peeked or not: a log %s',
    async (kind) => {
      const entries = exampleRun('r', 20)
      for (const peeks of [0, 1, 2]) {
        const { log } = counted()
        const read: typeof log.read = (...args) => {
          const cursor = log.read(...args)[Symbol.asyncIterator]()
          return { [Symbol.asyncIterator]: () => (kind === 'with take' ? cursor : { next: () => cursor.next() }) }
        }
        const reader = createRunReader({ ...log, read }, 'r')
        const [first, ...batches] = cutAt(entries, [1, 4, 11])
        await log.append('r', 1, first!)
        for (let i = 0; i < Math.min(peeks, 1); i++) await reader.peek()
        const waited = peeks === 2 ? reader.peek() : undefined
        const all = taken(reader)
        for (const batch of batches) await log.append('r', 1, batch)
        expect(await all).toEqual(entries)
        await waited
      }
    },
  )

  test('whoever waits when the reading begins takes nothing from it', async () => {
    const { log } = counted()
    const reader = createRunReader(log, 'r')
    await log.append('r', 1, [startEntry('r')])
    await reader.peek()
    const waited = reader.peek()
    expect((await reader.next()).value).toEqual([startEntry('r')])
    const next = reader.next()
    await log.append('r', 1, [endEntry(2)])
    expect((await next).value).toEqual([endEntry(2)])
    expect((await waited).value).toEqual([endEntry(2)])
    expect((await reader.next()).done).toBe(true)
  })

  test.each([
    ['a long one that the answer begins with is read once', 1, 1],
    ['behind more than it keeps it reads again from the beginning', 2, 2],
  ])('of long batches, %s', async (_, looks, reads) => {
    const { log, seen } = counted()
    const entries = exampleRun('r', 2000)
    const reader = createRunReader(log, 'r')
    for (let i = 0; i < looks; i++) {
      const waited = reader.peek()
      await log.append('r', 1, entries.slice(i * 900, (i + 1) * 900))
      await waited
    }
    const read = rest(reader)
    await log.append('r', 1, entries.slice(looks * 900))
    expect(await read).toEqual(entries)
    expect(seen.reads).toBe(reads)
  })

  test('who still waits when more was looked at than is kept waits for what comes', async () => {
    const { log, seen } = counted()
    const entries = exampleRun('r', 2000)
    await log.append('r', 1, entries.slice(0, 1000))
    const reader = createRunReader(log, 'r')
    await reader.peek()
    const more = reader.peek()
    const read = rest(reader)
    await log.append('r', 1, entries.slice(1000))
    expect(await read).toEqual(entries)
    expect((await more).done).toBe(true)
    expect(seen.reads).toBe(2)
  })

  test('closed: who waits gets the end', async () => {
    const { log } = counted()
    const reader = createRunReader(log, 'r')
    const waited = reader.peek()
    reader.close()
    expect((await waited).done).toBe(true)
    expect(await rest(reader)).toEqual([])
  })

  test('behind a long beginning it looks from where it is told to, and reads from the beginning', async () => {
    const { log, seen } = counted()
    const entries = exampleRun('r', 1000)
    await log.append('r', 1, entries)
    const reader = createRunReader(log, 'r', 0, 900)
    expect((await reader.peek()).value).toEqual(entries.slice(899))
    expect(await rest(reader)).toEqual(entries)
    expect(seen.reads).toBe(2)
    const short = createRunReader(log, 'r', 0, 200)
    expect((await short.peek()).value).toEqual(entries)
    expect(await rest(short)).toEqual(entries)
    expect(seen.reads).toBe(3)
  })
})

/** Texts that entries share: what is read is what was written, by every instance; each is stored once, and goes with the last run that uses it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import type { Message } from '../../part/message.ts'
import { startLossyRedis } from '../../../test/support/lossy-redis.ts'
import { openArchive } from '../archive/archive.ts'
import { readAll } from '../contract/tools.contract.ts'
import { endEntry, entry, startEntry } from '../example-run.contract.ts'
import { partitionOf } from './keys.ts'
import { redisStore, type RedisOptions } from './redis-store.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-redis-texts-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Different for each number, and longer than a message that stays in its entry. */
const sentence = (i: number) => `${i} `.padEnd(700, `the boat ${i * 7919} `)
const messages = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i): Message =>
    (from + i) % 2 === 0
      ? { role: 'user', content: sentence(from + i) }
      : { role: 'assistant', content: [{ type: 'text', text: sentence(from + i) }] },
  )

function runWith(run: string, list: Message[], system = 'Be brief.'): Entry[] {
  return [
    startEntry(run, { input: { messages: list } }),
    entry(2, { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }, 'main/a'),
    entry(3, { type: 'step-start', stepType: 'model-call', attempt: 1 }, 'main/a/1'),
    entry(4, { type: 'prompt', stage: 'answer', model: 'm', system, messages: list }, 'main/a/1'),
    entry(5, { type: 'step-finish', duration: 1 }, 'main/a/1'),
    entry(6, { type: 'step-finish', duration: 1 }, 'main/a'),
    endEntry(7),
  ]
}

/** Runs of one partition. */
const together = (count: number, partition = partitionOf('r1')) => {
  const runs: string[] = []
  for (let i = 1; runs.length < count; i++) if (partitionOf(`r${i}`) === partition) runs.push(`r${i}`)
  return runs
}

describeRedis('texts in Redis', (redis) => {
  let prefix: string
  let stores: Store[]
  let store: Store
  beforeEach(async () => {
    prefix = freshPrefix()
    stores = []
    store = await open()
  })
  afterEach(async () => {
    await Promise.all(stores.map((each) => each.close()))
  })

  async function open(options: RedisOptions = {}): Promise<Store> {
    const opened = await redisStore(`${redis().url}?prefix=${prefix}`, options)
    stores.push(opened)
    return opened
  }

  async function keys(pattern: string): Promise<string[]> {
    const found = await redis().command('KEYS', `{${prefix}${pattern}`)
    return found.split('\r\n').filter((line) => line.startsWith('{'))
  }

  const number = async (...args: string[]) => Number((await redis().command(...args)).replaceAll(/[^\d-]/gu, ''))

  async function bytes(): Promise<number> {
    let sum = 0
    for (const key of await keys(':*')) sum += await number('MEMORY', 'USAGE', key, 'SAMPLES', '0')
    return sum
  }

  test('come back as they were to every instance, at once and later, for conversations of any length', async () => {
    const other = await open()
    const reading = new AbortController()
    for (const length of [0, 1, 3, 24, 25, 200, 1500]) {
      const run = `run-${length}`
      const entries = runWith(run, messages(0, length), sentence(9).repeat(4))
      const heard: Entry[] = []
      const hears = (async () => {
        for await (const batch of other.log.read(run, { signal: reading.signal })) heard.push(...batch)
      })()
      await store.log.append(run, 1, entries.slice(0, 3))
      await store.log.append(run, 1, entries.slice(3))
      await hears
      expect(JSON.stringify(heard)).toBe(JSON.stringify(entries))
      expect(JSON.stringify(await readAll(other, run))).toBe(JSON.stringify(entries))
    }
    const changed: Entry[] = []
    for await (const changes of other.log.changes({ after: 0 })) {
      for (const { run, entries } of changes) if (run === 'run-1500') changed.push(...entries)
    }
    expect(changed).toEqual(runWith('run-1500', messages(0, 1500), sentence(9).repeat(4)))
  })

  test('a thread takes what was said once in each partition, not once in each turn', async () => {
    const sizes: number[] = []
    for (let turn = 1; turn <= 200; turn++) {
      await store.log.append(`r${turn}`, 1, runWith(`r${turn}`, messages(0, 2 * turn)))
      if (turn % 100 === 0) sizes.push(await bytes())
    }
    const said = JSON.stringify(messages(0, 200)).length
    // Redis needs a key for each text, and rounds its size up.
    expect(sizes[0]).toBeLessThan(16 * (said + 200 * 160) + 100 * 13_000)
    // Three times as much would be quadratic.
    expect(sizes[1]! - sizes[0]!).toBeLessThan(sizes[0]! * 1.4)
  })

  test('go with the last run that uses them, archived or deleted', async () => {
    const [a, b, c] = together(3) as [string, string, string]
    const archiving = await open({ archive: openArchive(join(root, prefix)) })
    await store.log.append(a, 1, runWith(a, messages(0, 90)))
    await store.log.append(b, 1, runWith(b, messages(0, 80)))
    await store.log.append(c, 1, runWith(c, messages(0, 70)))
    const all = await keys(':*:text:*')
    const size = (await store.upkeep!.size()).used
    expect(size).toBeGreaterThan(90 * 700)
    expect(await archiving.upkeep!.archive!(a)).toBe(true)
    expect(await readAll(archiving, a)).toEqual(runWith(a, messages(0, 90)))
    expect((await keys(':*:text:*')).length).toBeLessThan(all.length)
    expect(await store.upkeep!.compact(b)).toBeDefined()
    expect(await readAll(archiving, b)).toEqual(runWith(b, messages(0, 80)))
    expect(await archiving.upkeep!.drop(a)).toBe(true)
    expect(await archiving.upkeep!.drop(b)).toBe(true)
    expect(await readAll(archiving, c)).toEqual(runWith(c, messages(0, 70)))
    // What this process has seen there is sent again.
    await store.log.append(a, 1, runWith(a, messages(0, 90)))
    expect(await readAll(archiving, a)).toEqual(runWith(a, messages(0, 90)))
    for (const run of [a, c]) expect(await archiving.upkeep!.drop(run)).toBe(true)
    expect(await keys(':*:text*')).toEqual([])
  })

  test('of a fork are its own', async () => {
    const list = messages(0, 50)
    await store.log.append('a', 1, runWith('a', list))
    await store.log.fork('a', 4, 'fork')
    expect(await keys(':*:texts:fork')).toHaveLength(1)
    await store.log.claim('fork', 1)
    await store.log.append('fork', 2, [endEntry(5)])
    const before = await readAll(store, 'fork')
    expect(before[3]).toEqual(runWith('a', list)[3])
    // Nothing of it lies where its source is.
    const tag = `{${prefix}:${partitionOf('a')}}`
    expect(partitionOf('fork')).not.toBe(partitionOf('a'))
    for (const key of await keys(`:${partitionOf('a')}}*`))
      expect(key.startsWith(tag) && (await number('DEL', key))).toBe(1)
    expect(await readAll(await open(), 'fork')).toEqual(before)
  })

  test('that Redis has lost are sent again, whichever they are', async () => {
    const [a, b] = together(2) as [string, string]
    await store.log.append(a, 1, runWith(a, messages(0, 60)))
    for (const key of await keys(':*:text:*')) await redis().command('DEL', key)
    const other = await open()
    expect((await readAll(other, a))[3]).toMatchObject({ type: 'warning', code: 'unreadable-entry' })
    await store.log.append(b, 1, runWith(b, messages(0, 60)))
    expect(await readAll(other, b)).toEqual(runWith(b, messages(0, 60)))
  })

  test('are not shared as long as a process of an older version is there, which then cannot come back', async () => {
    const format = `{${prefix}}:format`
    await Promise.all(stores.map((each) => each.close()))
    await redis().command('SET', format, '1 16')
    const beats = `{${prefix}:fleet}:beats`
    const far = String(Date.now() + 30_000)
    await redis().command('ZADD', beats, far, 'old')
    const next = await open({ beatMs: 20 })
    const judges = async () => (await next.fleet.processes!()).length === 2
    await expect.poll(judges).toBe(true)
    await next.log.append('a', 1, runWith('a', messages(0, 60)))
    expect(await keys(':*:text*')).toEqual([])
    expect(await redis().command('GET', format)).toContain('1 16')
    await redis().command('ZREM', beats, 'old')
    await expect.poll(() => redis().command('GET', format), { timeout: 20_000 }).toContain('2 16')
    await expect
      .poll(async () => {
        await next.log.append(`b${Date.now()}`, 1, runWith('b', messages(0, 60))).catch(() => undefined)
        return (await keys(':*:text:*')).length
      })
      .toBeGreaterThan(0)
    expect(await readAll(await open(), 'a')).toEqual(runWith('a', messages(0, 60)))
  })
})

describeRedis('a Redis that loses its last second', () => {
  test('is told the texts again with the entries, by each of the processes that need them', async () => {
    const server = await startLossyRedis()
    const [one, two] = await Promise.all([0, 1].map(() => redisStore(`${server.url}?prefix=p`)))
    const [a, b, c] = together(3) as [string, string, string]
    const begun = (run: string, to: number) => runWith(run, messages(0, to)).slice(0, -1)
    await one!.log.append(a, 1, begun(a, 30))
    await server.remember()
    await one!.log.append(b, 1, begun(b, 60))
    // It has learned of some of these from nobody.
    await two!.log.append(c, 1, begun(c, 62))
    await one!.log.fork(b, 4, 'fork')
    await server.kill()
    await server.lose()
    expect(await one!.log.append(b, 1, [endEntry(7)])).toBe('stored')
    expect(await two!.log.append(c, 1, [endEntry(7)])).toBe('stored')
    const fresh = await redisStore(`${server.url}?prefix=p`)
    expect(await readAll(fresh, a)).toEqual(begun(a, 30))
    expect(await readAll(fresh, b)).toEqual(runWith(b, messages(0, 60)))
    expect(await readAll(fresh, c)).toEqual(runWith(c, messages(0, 62)))
    expect((await readAll(fresh, 'fork'))[3]).toEqual(begun(b, 60)[3])
    await Promise.all([one!, two!, fresh].map((each) => each.close()))
    await server.close()
  })
})

/** Redis fills up: there is a warning before, what fails says so at once, nothing is lost, and what makes room still works. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { agent, createEngine, entriesOf, only, until } from '../../../test/support/engine.ts'
import { eventually } from '../../../test/support/going-on.ts'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import { createScriptedModel, finish, latch, text } from '../../models/testing/scripted-model.ts'
import type { Store } from '../../part/log.ts'
import { openArchive } from '../archive/archive.ts'
import { readAll } from '../contract/tools.contract.ts'
import { exampleRun, startEntry } from '../example-run.contract.ts'
import { redisStore, type RedisOptions } from './redis-store.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-redis-memory-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const mb = 1024 ** 2

describeRedis('the memory of Redis', (redis) => {
  let prefix: string
  let stores: Store[]
  beforeEach(() => {
    prefix = freshPrefix()
    stores = []
  })
  afterEach(async () => {
    await Promise.all(stores.map((each) => each.close()))
    await limit('0')
  })

  const limit = (bytes: string) => redis().command('CONFIG', 'SET', 'maxmemory', bytes)
  const used = async () => Number(/used_memory:(\d+)/u.exec(await redis().command('INFO', 'memory'))![1])

  async function open(options: RedisOptions = {}): Promise<Store> {
    const opened = await redisStore(`${redis().url}?prefix=${prefix}`, options)
    stores.push(opened)
    return opened
  }

  test('without a limit, and above 80 % of it, there is one warning each, without the password', async () => {
    const lines: string[] = []
    const said = Promise.withResolvers<string>()
    const warn = (line: string) => {
      lines.push(line)
      if (line.includes('maxmemory')) said.resolve(line)
    }
    await open({ warn })
    expect(await said.promise).toContain('no maxmemory')
    await limit(String(Math.round((await used()) * 1.1)))
    const full = Promise.withResolvers<string>()
    await open({ warn: full.resolve })
    expect(await full.promise).toMatch(/Redis uses \d\d % of its memory .*record\.archive/u)
    await limit(String(64 * mb))
    const quiet: string[] = []
    const third = await open({ warn: (line) => quiet.push(line) })
    // Answers come in order: it has looked by then.
    await third.runs.get('r')
    expect([lines.length, quiet]).toEqual([1, []])
  })

  test('full, it refuses writes at once; reading, compacting, archiving and deleting make room, and it goes on', async () => {
    const store = await open({ archive: openArchive(join(root, prefix)) })
    const big = exampleRun('big', 3000)
    for (let i = 0; i < big.length; i += 10) await store.log.append('big', 1, big.slice(i, i + 10))
    const [, ...others] = exampleRun('small')
    const small = [startEntry('small', { threadId: 'other' }), ...others]
    await store.log.append('small', 1, small.slice(0, 3))
    await limit('1mb')
    const rest = small.slice(3)
    const began = performance.now()
    const refused = { code: 'store-failed', detail: expect.stringContaining('OOM') }
    await expect(store.log.append('small', 1, rest)).rejects.toMatchObject(refused)
    await expect(store.log.append('new', 1, exampleRun('new'))).rejects.toMatchObject(refused)
    await expect(store.log.post('small', 'k', 'message')).rejects.toMatchObject(refused)
    expect(performance.now() - began).toBeLessThan(5000)
    expect(await readAll(store, 'big')).toEqual(big)
    expect(await readAll(store, 'small')).toEqual(small.slice(0, 3))
    expect(await store.runs.get('new')).toBeUndefined()
    expect(await store.upkeep!.compact('big')).toMatchObject({ entriesBefore: 3006 })
    expect(await store.upkeep!.archive!('big')).toBe(true)
    expect(await store.upkeep!.drop('big')).toBe(true)
    await limit('0')
    expect(await store.log.append('small', 1, rest)).toBe('stored')
    expect(await readAll(store, 'small')).toEqual(small)
  })

  test.each([
    ['with runs', true],
    ['that was empty', false],
  ])('a full one %s can be opened: instances start, beat, read and follow, and make room', async (_, hasRuns) => {
    const run = exampleRun('r', 3000)
    if (hasRuns) {
      const store = await open()
      for (let i = 0; i < run.length; i += 10) await store.log.append('r', 1, run.slice(i, i + 10))
    }
    await limit('1mb')
    const [one, two] = [await open(), await open({ archive: openArchive(join(root, prefix)), joins: false })]
    await one.fleet.introduce!({ version: '1.2.3' })
    const own = async () => (await two.fleet.processes!()).filter(({ version }) => version === '1.2.3')
    await expect.poll(own).toMatchObject([{ alive: true }])
    const { id } = (await own())[0]!
    const beat = () => redis().command('ZSCORE', `{${prefix}:fleet}:beats`, id)
    const first = await beat()
    await expect.poll(beat).not.toBe(first)
    const position = await one.log.position()
    await one.positions!.keep('reader', position, 'somebody')
    expect(await two.positions!.get('reader')).toEqual({ position, by: 'somebody' })
    await expect(one.log.append('new', 1, exampleRun('new'))).rejects.toMatchObject({ code: 'store-failed' })
    if (!hasRuns) return
    for await (const changes of one.log.changes({ after: 0 })) {
      expect(changes.length).toBeGreaterThan(0)
      break
    }
    expect(await readAll(one, 'r')).toEqual(run)
    expect(await two.upkeep!.compact('r')).toMatchObject({ entriesBefore: 3006 })
    expect(await two.upkeep!.archive!('r')).toBe(true)
    expect(await two.upkeep!.drop('r')).toBe(true)
  })

  test('a run that cannot be stored fails with store-failed and never hangs', async () => {
    const gate = latch()
    const redisBacked = await open()
    const engine = createEngine({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[text('one '), gate, text('two'), finish()]]) },
      wrapStore(inner) {
        void inner.close()
        return redisBacked
      },
    })
    const run = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    await until(redisBacked, run.id, ({ type }) => type === 'text-delta')
    await limit('1mb')
    const lost = new Promise((tell) => engine.runtime.onLost(run.id, tell))
    gate.open()
    expect(await lost).toMatchObject({ code: 'store-failed' })
    await limit('0')
    await eventually(async () => (await redisBacked.runs.get(run.id))!.status === 'failed')
    expect(only(await entriesOf(redisBacked, run.id), 'run-end')).toMatchObject([{ outcome: 'failed' }])
    await engine.close()
  })
})

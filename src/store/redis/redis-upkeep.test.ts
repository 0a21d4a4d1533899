/** Ended runs leave Redis: merged, archived, deleted. They can be read at every moment, and each work is done once. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import { readView } from '../../fold/read-view.ts'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import { startHousekeeping } from '../../record/housekeeping.ts'
import { archiveRuns, compactRuns, pruneRuns } from '../../record/upkeep.ts'
import { openArchive, type Archive } from '../archive/archive.ts'
import { collect, live, readAll } from '../contract/tools.contract.ts'
import { endEntry, entry, exampleRun, noon, startEntry } from '../example-run.contract.ts'
import { verify } from '../ndjson.ts'
import { partitionOf } from './keys.ts'
import { redisStore, type RedisOptions } from './redis-store.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-redis-archive-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const textOf = (entries: readonly Entry[]) =>
  entries.map((entry) => (entry.type === 'text-delta' ? entry.delta : '')).join('')

describeRedis('upkeep of Redis', (redis) => {
  let prefix: string
  let folder: string
  let stores: Store[]
  let store: Store
  beforeEach(async () => {
    prefix = freshPrefix()
    folder = join(root, prefix)
    stores = []
    store = await open()
  })
  afterEach(async () => {
    await Promise.all(stores.map((each) => each.close()))
  })

  async function open(options: RedisOptions = { archive: openArchive(folder) }): Promise<Store> {
    const opened = await redisStore(`${redis().url}?prefix=${prefix}`, options)
    stores.push(opened)
    return opened
  }

  /** All keys of this test. */
  async function keys(): Promise<string[]> {
    const found = await redis().command('KEYS', `{${prefix}*`)
    return found
      .split('\r\n')
      .filter((line) => line.startsWith('{'))
      .sort()
  }

  const number = async (...args: string[]) => Number((await redis().command(...args)).replaceAll(/[^\d-]/gu, ''))

  async function memoryOf(run: string): Promise<number> {
    const key = (await keys()).find((name) => name.endsWith(`:log:${run}`))
    return key === undefined ? 0 : number('MEMORY', 'USAGE', key, 'SAMPLES', '0')
  }

  /** A long run, appended an entry at a time, as deltas come. */
  async function record(run: string, deltas: number, threadId = 'thread-1', each = 1): Promise<Entry[]> {
    const [, ...rest] = exampleRun(run, deltas)
    const entries = [startEntry(run, { threadId }), ...rest]
    const batches = []
    for (let i = 0; i < entries.length; i += each) batches.push(store.log.append(run, 1, entries.slice(i, i + each)))
    await Promise.all(batches)
    return entries
  }

  async function contentOf(run: string, from = store) {
    const entries = await readAll(from, run)
    expect(verify(entries)).toEqual([])
    return {
      view: await readView(from, run),
      text: textOf(entries),
      others: entries.filter(({ type }) => type !== 'text-delta'),
    }
  }

  test('2,000 deltas become a few items; what the run says and its positions stay, for every instance', async () => {
    const entries = await record('r', 2000)
    const other = await open()
    const content = await contentOf('r')
    const before = await memoryOf('r')
    expect(await store.upkeep!.uncompacted(noon, 10)).toEqual([])
    expect(await store.upkeep!.uncompacted(Infinity, 10)).toEqual(['r'])
    const told = await store.upkeep!.compact('r', { dryRun: true })
    expect(await store.upkeep!.compact('r')).toEqual(told)
    const after = await memoryOf('r')
    expect(after).toBeLessThan(before / 8)
    expect(after / content.text.length).toBeLessThan(1.5)
    for (const each of [store, other]) expect(await contentOf('r', each)).toEqual(content)
    expect(await store.upkeep!.uncompacted(Infinity, 10)).toEqual([])
    expect(await store.runs.get('r')).toMatchObject({ compactedAt: expect.any(Number), lastSeq: 2006 })
    // A cursor among the merged deltas is refused; those that are left are not.
    await expect(readAll(other, 'r', 900)).rejects.toMatchObject({ code: 'compacted' })
    const left = await readAll(store, 'r')
    for (const { seq } of left) expect(await readAll(other, 'r', seq)).toEqual(left.filter((each) => each.seq > seq))
    expect(await store.log.append('r', 1, entries.slice(-1))).toBe('duplicate')
    expect(await keys()).not.toContainEqual(expect.stringMatching(/:(?:merge|lease):/u))
  })

  test('the mark of a run changes for every instance when it is deleted, and when it is stored again', async () => {
    for (const run of ['r', 's']) await record(run, 5)
    const other = await open()
    const marks = () => other.upkeep!.marks(['s', 'none', 'r', 's'])
    const before = await marks()
    expect(before).toEqual([expect.any(String), undefined, expect.any(String), before[0]])
    expect(await marks()).toEqual(before)
    await store.upkeep!.drop('r')
    expect(await marks()).toEqual([before[0], undefined, undefined, before[0]])
    await record('r', 5)
    const [, , again] = await marks()
    expect([undefined, before[2]]).not.toContain(again)
    const many = await other.upkeep!.marks(Array.from({ length: 20_000 }, (_, i) => (i === 19_999 ? 'r' : `x${i}`)))
    expect(many.filter((mark) => mark !== undefined)).toEqual([again])
  })

  test('a run that another instance has deleted cannot be read where it ran, not by its first reader either', async () => {
    const other = await open()
    for (const run of ['gone', 'stays']) await other.log.append(run, 1, exampleRun(run, 5))
    expect(await store.upkeep!.drop('gone')).toBe(true)
    expect(await readAll(other, 'gone')).toEqual([])
    expect(await readAll(other, 'stays', 0, live())).toEqual(exampleRun('stays', 5))
  })

  describe.each(['folder', 'archive.db'])('with an archive in a %s', (name) => {
    let path: string
    beforeEach(async () => {
      path = join(folder, name)
      store = await open({ archive: openArchive(path) })
    })

    test('an archived run leaves its row; all else of it is read from there, by any instance', async () => {
      await record('r', 2000)
      const content = await contentOf('r')
      expect(await store.upkeep!.unarchived!(noon, 10)).toEqual([])
      expect(await store.upkeep!.unarchived!(Infinity, 10)).toEqual(['r'])
      await store.upkeep!.compact('r')
      const entries = await readAll(store, 'r')
      expect(await store.upkeep!.archive!('r')).toBe(true)
      expect(await store.upkeep!.unarchived!(Infinity, 10)).toEqual([])
      expect(await store.upkeep!.archive!('r')).toBe(false)
      expect((await keys()).filter((key) => key.endsWith(':log:r'))).toEqual([])
      const other = await open({ archive: openArchive(path) })
      for (const each of [store, other]) expect(await contentOf('r', each)).toEqual(content)
      for (const { seq } of entries.slice(0, -1)) {
        expect(await readAll(other, 'r', seq, live())).toEqual(entries.filter((each) => each.seq > seq))
      }
      expect(await readAll(other, 'r', 2006, live())).toEqual([])
      expect(await collect(other.log.read('r', { after: 2, before: 5 }))).toEqual(entries.slice(2, 4))
      await expect(readAll(other, 'r', 900)).rejects.toMatchObject({ code: 'compacted' })
      expect(await other.runs.get('r')).toMatchObject({ status: 'completed', lastSeq: 2006 })
      // Who has no archive is told.
      await expect(readAll(await open({}), 'r')).rejects.toMatchObject({
        code: 'store-failed',
        message: expect.stringContaining('record.archive'),
      })
    })

    test('an owner that lost the answer sends the end again; a deleted run leaves nothing there', async () => {
      const entries = await record('r', 5)
      await store.upkeep!.archive!('r')
      const other = await open({ archive: openArchive(path) })
      expect(await other.log.append('r', 1, entries.slice(-1))).toBe('duplicate')
      expect(await other.upkeep!.drop('r')).toBe(true)
      expect(await other.runs.get('r')).toBeUndefined()
      expect(await readAll(other, 'r')).toEqual([])
      const archive = openArchive(path)
      await expect(collect(archive.read('r', archive.placeOf({ startedAt: noon })))).rejects.toThrow(
        'cannot read run r',
      )
      await archive.close()
    })
  })

  /** An archive that counts, and tells when it is asked. */
  function counting(inner: Archive, onPut: (run: string) => Promise<void> | void = () => undefined) {
    const puts: string[] = []
    const archive: Archive = {
      ...inner,
      async put(row, entries) {
        puts.push(row.id)
        await onPut(row.id)
        await inner.put(row, entries)
      },
    }
    return { puts, archive }
  }

  test('two instances that work at once do each work once, and all of it', async () => {
    const runs = Array.from({ length: 24 }, (_, i) => `r${String(i).padStart(2, '0')}`)
    for (const run of runs) await record(run, 20)
    const workers = await Promise.all(
      [0, 1].map(async () => {
        const counted = counting(openArchive(folder))
        return { ...counted, upkeep: (await open({ archive: counted.archive })).upkeep! }
      }),
    )
    const merged = await Promise.all(workers.map(({ upkeep }) => compactRuns(upkeep, { endedBefore: Infinity })))
    expect(merged.reduce((sum, each) => sum + each.runs, 0)).toBe(24)
    const moved = await Promise.all(workers.map(({ upkeep }) => archiveRuns(upkeep, { endedBefore: Infinity })))
    expect(moved.reduce((sum, count) => sum + count, 0)).toBe(24)
    expect(workers.flatMap(({ puts }) => puts).toSorted()).toEqual(runs)
    expect(workers.every(({ puts }) => puts.length > 0)).toBe(true)
    for (const run of runs) expect((await contentOf(run)).text.length).toBeGreaterThan(100)
  })

  test('a run is read while it moves: before, in the middle and after', async () => {
    const entries = await record('r', 3000, 't', 5)
    const gate = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const { archive } = counting(openArchive(folder), async () => {
      asked.resolve()
      await gate.promise
    })
    const mover = await open({ archive })
    const reader = store.log.read('r')[Symbol.asyncIterator]()
    const seen = [...(await reader.next()).value!]
    expect(seen.length).toBeLessThan(entries.length)
    const moving = mover.upkeep!.archive!('r')
    await asked.promise
    seen.push(...(await reader.next()).value!)
    // Nobody else takes it meanwhile.
    expect(await store.upkeep!.archive!('r')).toBe(false)
    expect(await store.upkeep!.compact('r')).toBeUndefined()
    expect(await store.upkeep!.unarchived!(Infinity, 10)).toEqual([])
    gate.resolve()
    expect(await moving).toBe(true)
    for (let next; !(next = await reader.next()).done;) seen.push(...next.value)
    expect(seen).toEqual(entries)
  })

  test('an archive that cannot be written loses nothing, is told once, and is tried again', async () => {
    const file = join(root, 'file')
    writeFileSync(file, '')
    await record('r', 50)
    const content = await contentOf('r')
    const failing = await open({ archive: openArchive(join(file, 'folder')) })
    const lines: string[] = []
    const told = Promise.withResolvers<void>()
    let tries = 0
    const upkeep = {
      ...failing.upkeep!,
      archive: async (run: string) => {
        if (++tries === 3) told.resolve()
        return failing.upkeep!.archive!(run)
      },
    }
    const policy = { compactAfter: 10, archiveAfter: 10 }
    const house = startHousekeeping({ ...failing, upkeep }, policy, (line) => lines.push(line))
    await told.promise
    await house.close()
    expect(lines).toEqual([expect.stringMatching(/archived.*cannot archive run r.*ENOTDIR/u)])
    expect(await contentOf('r')).toEqual(content)
    expect(await store.upkeep!.archive!('r')).toBe(true)
    expect(await contentOf('r')).toEqual(content)
  })

  test('a run that cannot be read holds up no other: it is told once, left out for a while, and tried again', async () => {
    const ids = ['a', 'damaged', 'z']
    for (const run of ids) await record(run, 50)
    const key = (await keys()).find((name) => name.endsWith(':log:damaged'))!
    await redis().command('XADD', key, '9999-0', 'e', '{"seq')
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const tries: string[] = []
    const upkeep = {
      ...store.upkeep!,
      archive: async (run: string) => {
        tries.push(run)
        if (tries.filter((each) => each === 'damaged').length === 3) resolve()
        return store.upkeep!.archive!(run)
      },
    }
    const lines: string[] = []
    const policy = { compactAfter: 10, archiveAfter: 10 }
    const house = startHousekeeping({ ...store, upkeep }, policy, (line) => lines.push(line))
    await over
    await house.close()
    expect(lines).toEqual([
      expect.stringMatching(/^run damaged could not be (?:compacted|archived): .* tried again later\.$/u),
    ])
    expect(tries.filter((run) => run !== 'damaged').toSorted()).toEqual(['a', 'z'])
    for (const run of ['a', 'z']) expect(await store.upkeep!.archive!(run)).toBe(false)
    for (const each of [compactRuns, archiveRuns])
      await expect(each(store.upkeep!, { endedBefore: Infinity })).rejects.toThrow(/JSON|damaged/u)
    expect(await pruneRuns(store.upkeep!, { idleBefore: Infinity })).toMatchObject({ runs: 3 })
  })

  test('changes of a compacted run have each entry once; a conversation that goes on keeps its runs', async () => {
    // Two texts, so that a change ends with what is left and begins among merged deltas.
    const [start, step, ...rest] = exampleRun('r', 60)
    const block = rest.slice(0, -2)
    const twice = [start!, step!, ...block, ...block.map((each) => ({ ...each, id: 'second' })), ...rest.slice(-2)]
    const entries = twice.map((each, i) => ({ ...each, seq: i + 1 }) as Entry)
    entries[0] = startEntry('r', { threadId: 't' })
    for (let i = 0; i < entries.length; i += 10) await store.log.append('r', 1, entries.slice(i, i + 10))
    await store.log.append('active', 1, [startEntry('active', { threadId: 't' })])
    await store.upkeep!.compact('r')
    const other = await open()
    const left = await readAll(other, 'r')
    const changed = await collect(other.log.changes())
    expect(changed.filter(({ run }) => run === 'r').flatMap((change) => change.entries)).toEqual(left)
    expect(left.length).toBeLessThan(entries.length)
    expect(await store.upkeep!.expired(Infinity)).toEqual({ runs: [] })
    expect(await store.upkeep!.drop('r')).toBe(false)
    await store.log.fork('r', entries.length, 'fork')
    expect((await store.upkeep!.uncompacted(Infinity, 9)).concat('r').toSorted()).toEqual(['fork', 'r'])
  })

  test('inboxes without a run go by themselves: idempotency keys, runs that never began, threads', async () => {
    const secondsOf = async (inbox: string) => {
      const found = (await keys()).filter(
        (key) => key.endsWith(`:inbox:${inbox}`) || key.endsWith(`:messages:${inbox}`),
      )
      return Promise.all(found.map((key) => number('TTL', key)))
    }
    const day = 86_400
    for (const inbox of ['key:k', 'thread:t', 'r', 'never']) await store.log.post(inbox, 'stop', { reason: 'x' })
    const [ofKey, ofThread, before] = await Promise.all(['key:k', 'thread:t', 'r'].map(secondsOf))
    for (const seconds of [...ofKey!, ...before!]) expect(seconds).toBeGreaterThan(day - 60)
    for (const seconds of [...ofKey!, ...before!]) expect(seconds).toBeLessThanOrEqual(day)
    for (const seconds of ofThread!) expect(seconds).toBeGreaterThan(30 * day)
    await record('r', 2, 't')
    await store.log.post('r', 'more', 1)
    // Those of a run go with the run.
    expect(await secondsOf('r')).toEqual([-1, -1])
    expect((await secondsOf('never')).length).toBe(2)
  })

  test('when all runs have ended, were archived and have expired, Redis and the archive have nothing of them', async () => {
    const memory = async () => {
      const used = (await keys()).map((key) => number('MEMORY', 'USAGE', key, 'SAMPLES', '0'))
      return (await Promise.all(used)).reduce((sum, bytes) => sum + bytes, 0)
    }
    const ids = Array.from({ length: 40 }, (_, i) => `run ${i}`)
    for (const [i, run] of ids.entries()) {
      await store.log.post(`thread:t${i % 10}`, `turn:${run}`, { run })
      const entries = await record(run, 100, `t${i % 10}`, 4)
      await store.runs.keepView(run, entries.at(-1)!.seq, { text: 'seen' })
      await store.log.post(run, 'stop', { reason: 'late' })
    }
    const before = await memory()
    expect(await compactRuns(store.upkeep!, { endedBefore: Infinity })).toMatchObject({ runs: 40 })
    expect(await archiveRuns(store.upkeep!, { endedBefore: Infinity })).toBe(40)
    const { used } = await store.upkeep!.size()
    expect(used).toBeLessThan(before)
    expect(await pruneRuns(store.upkeep!, { idleBefore: noon })).toEqual({ runs: 0, bytes: 0 })
    expect(await pruneRuns(store.upkeep!, { idleBefore: Infinity, dryRun: true })).toMatchObject({ runs: 40 })
    expect(await pruneRuns(store.upkeep!, { idleBefore: Infinity })).toMatchObject({ runs: 40 })
    await store.upkeep!.vacuum()
    const kinds = (await keys()).map((key) => /\}:(\w+)/u.exec(key)![1])
    expect(new Set(kinds)).toEqual(new Set(['format', 'beats', 'process', 'clock', 'ahead', 'changes']))
    expect(await memory()).toBeLessThan(before / 5)
    expect(readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.gz'))).toEqual(
      [],
    )
  })

  test('a fork is a copy: its source may be deleted, and expires, before it', async () => {
    await record('r', 5)
    await store.log.fork('r', 4, 'f')
    const entries = await readAll(store, 'f')
    expect(entries).toHaveLength(4)
    expect(await store.upkeep!.expired(Infinity)).toEqual({ runs: [{ id: 'r', bytes: expect.any(Number) as number }] })
    expect(await store.upkeep!.drop('r')).toBe(true)
    expect(await readAll(await open(), 'f')).toEqual(entries)
  })

  test('a fork that is asked something else is indexed by its own words, and leaves none', async () => {
    const asks = (content: string) => ({ messages: [{ role: 'user', content }] })
    await store.log.append('r', 1, [
      startEntry('r', { input: asks('The time') }),
      entry(2, { type: 'suspend', requests: [] }),
    ])
    // In a partition of its own.
    const fork = ['f', 'g'].find((run) => partitionOf(run) !== partitionOf('r'))!
    const words = async () => {
      const place = `:${partitionOf(fork)}}:word:`
      return (await keys()).flatMap((key) =>
        key.includes(place) ? [key.slice(key.indexOf(place) + place.length)] : [],
      )
    }
    await store.log.fork('r', 2, fork)
    expect((await words()).toSorted()).toEqual(['the', 'time'])
    await store.log.claim(fork, 1)
    const resume = entry(3, { type: 'resume', protocol: 'api', input: asks('The weather') })
    expect(await store.log.append(fork, 2, [resume])).toBe('stored')
    expect((await words()).toSorted()).toEqual(['the', 'weather'])
    await store.log.append(fork, 2, [endEntry(4)])
    expect(await store.upkeep!.drop(fork)).toBe(true)
    expect(await words()).toEqual([])
  })

  test('what nobody needs any more goes: old changes, records of dead processes, deletions that were cut off', async () => {
    const changes = `{${prefix}:3}:changes`
    for (let i = 1; i <= 250; i++) await redis().command('XADD', changes, `${i}-0`, 'r', 'gone', 's', '1', 'e', '1')
    await redis().command('HSET', `{${prefix}:fleet}:process:dead`, 'host', 'h')
    await redis().command('ZADD', `{${prefix}:fleet}:beats`, '1', 'dead')
    await record('r', 3)
    await store.upkeep!.archive!('r')
    await store.log.post('thread:gone', 'k', 1)
    const place = openArchive(folder).placeOf({ startedAt: noon })
    // What a crash behind the first step of a deletion leaves. A process without the archive leaves it to others.
    const dropped = `{${prefix}:${partitionOf('r')}}:dropped`
    await redis().command('HSET', dropped, 'r', `${place} gone`)
    await (await open({})).upkeep!.vacuum()
    expect(await keys()).toContain(dropped)
    await store.upkeep!.vacuum()
    expect((await keys()).filter((key) => /dropped|gone/u.test(key))).toEqual([])
    expect(await number('XLEN', changes)).toBeLessThanOrEqual(100)
    await vi.waitFor(async () => expect(await keys()).not.toContain(`{${prefix}:fleet}:process:dead`))
    await expect(readAll(await open(), 'r')).rejects.toMatchObject({ code: 'store-failed' })
  })

  test.each([
    ['in the middle of a compaction', 'compact'],
    ['in the middle of a file', 'put'],
    ['when the file is written', 'written'],
  ])('killed %s: the run is readable, and the work is done again', async (_, when) => {
    await record('r', 6000, 't', 20)
    const content = await contentOf('r')
    await killed({ url: `${redis().url}?prefix=${prefix}`, folder, when })
    if (when !== 'compact') expect(readdirSync(folder)).toContain(when === 'put' ? '.new' : '2024-01')
    expect(await contentOf('r')).toEqual(content)
    // The dead one has it for a minute.
    expect(await store.upkeep!.unarchived!(Infinity, 10)).toEqual([])
    await redis().command(
      'PEXPIRE',
      (await keys()).find((key) => key.endsWith(':lease:r'))!,
      '0',
    )
    expect(await compactRuns(store.upkeep!, { endedBefore: Infinity })).toMatchObject({ runs: 1 })
    expect(await contentOf('r')).toEqual(content)
    expect(await archiveRuns(store.upkeep!, { endedBefore: Infinity })).toBe(1)
    expect(await contentOf('r')).toEqual(content)
    expect(await store.upkeep!.drop('r')).toBe(true)
    const left = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((found) => found.isFile())
    expect(left.map(({ parentPath }) => parentPath)).toEqual(when === 'put' ? [join(folder, '.new')] : [])
  })
})

/** Runs the work in a process that kills itself at a moment. */
async function killed(work: { url: string; folder: string; when: string }): Promise<void> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'testing/killed-upkeep.ts'), JSON.stringify(work)], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
  expect(signal).toBe('SIGKILL')
}

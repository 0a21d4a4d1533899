/** Connections that break, answers that are lost, a Redis that is restarted with less than it had. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import { startLossyRedis } from '../../../test/support/lossy-redis.ts'
import { startRedisProxy } from '../../../test/support/redis-proxy.ts'
import { describeRedis, freshPrefix, startRedis } from '../../../test/support/redis.ts'
import { delta, firstMessages, live, readAll } from '../contract/tools.contract.ts'
import { endEntry, entry, startEntry } from '../example-run.contract.ts'
import { redisStore, type RedisOptions } from './redis-store.ts'

const stores: Store[] = []
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()))
})

async function open(url: string, options?: RedisOptions): Promise<Store> {
  const store = await redisStore(url, options)
  stores.push(store)
  return store
}

const seqs = (entries: readonly Entry[]) => entries.map(({ seq }) => seq)
const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1)

/** Reads a run until it ends. `seen`: the `seq`s so far; `ended`: what the reader failed with, or `true`. */
function follow(store: Store, run: string, after = 0) {
  const reader: { seen: number[]; ended: unknown } = { seen: [], ended: false }
  const read = async () => {
    for await (const batch of store.log.read(run, { after, signal: live() })) reader.seen.push(...seqs(batch))
    reader.ended = true
  }
  read().catch((error: unknown) => (reader.ended = error))
  return reader
}

describeRedis('Redis', (redis) => {
  test('a script whose answer is lost is sent again and counts once: appends, claims and messages', async () => {
    const proxy = await startRedisProxy(redis().port)
    const prefix = freshPrefix()
    const store = await open(`${proxy.url}?prefix=${prefix}`)
    const elsewhere = await open(`${redis().url}?prefix=${prefix}`)
    const readers = [store, elsewhere].map((each) => readAll(each, 'r', 0, live()))
    await elsewhere.log.append('r', 1, [startEntry('r')])
    await elsewhere.fleet.want('r')
    proxy.lose()
    expect(await store.log.claim('r', 1)).toBe(true)
    proxy.lose()
    expect(await store.log.append('r', 2, [delta(2)])).toBe('stored')
    proxy.lose()
    const both = [store.log.append('r', 2, [delta(3)]), store.log.append('r', 2, [delta(4), delta(5)])]
    expect(await Promise.all(both)).toEqual(['stored', 'stored'])
    const messages = ['a', 'b'].map((key) => ({ key, message: key }))
    proxy.lose()
    expect(await store.log.postAll('r', messages)).toEqual(messages.map(({ message }) => ({ first: true, message })))
    expect(await store.log.post('r', 'a', 'late')).toEqual({ first: false, message: 'a' })
    expect((await firstMessages(elsewhere, 'r', 9)).map(({ key }) => key)).toEqual(['a', 'b'])
    proxy.lose()
    expect(await store.log.append('r', 2, [endEntry(6)])).toBe('stored')
    for (const reader of readers) expect(seqs(await reader)).toEqual(upTo(6))
    expect(await elsewhere.runs.get('r')).toMatchObject({ epoch: 2, lastSeq: 6, status: 'completed' })
    expect(proxy.lost()).toBe(5)
    proxy.close()
  })

  test('a Redis that has forgotten the script is told it again', async () => {
    const store = await open(`${redis().url}?prefix=${freshPrefix()}`)
    await store.log.append('r', 1, [startEntry('r')])
    await redis().command('SCRIPT', 'FLUSH')
    expect(await store.log.append('r', 1, [delta(2)])).toBe('stored')
    expect(seqs(await readAll(store, 'r'))).toEqual([1, 2])
  })

  test('connections that break at any time cost nobody an entry, and no entry is stored twice', async () => {
    const proxy = await startRedisProxy(redis().port)
    const prefix = freshPrefix()
    const store = await open(`${proxy.url}?prefix=${prefix}`)
    const elsewhere = await open(`${proxy.url}?prefix=${prefix}`)
    const readers = [store, elsewhere].flatMap((each) => [
      readAll(each, 'r', 0, live()),
      readAll(each, 'r', 20, live()),
    ])
    await store.log.append('r', 1, [startEntry('r')])
    const appends: Promise<string>[] = []
    for (let seq = 2; seq < 200; seq++) {
      appends.push(store.log.append('r', 1, [delta(seq)]))
      if (seq % 60 === 0) proxy.cut()
      if (seq % 3 === 0) await appends.at(-1)
    }
    await store.log.append('r', 1, [endEntry(200)])
    expect(new Set(await Promise.all(appends))).toEqual(new Set(['stored']))
    for (const [i, reader] of readers.entries())
      expect(seqs(await reader)).toEqual(upTo(200).slice(i % 2 === 0 ? 0 : 20))
    proxy.close()
  })

  test('500 readers of a run elsewhere share one subscription and read nothing from the stream', async () => {
    const prefix = freshPrefix()
    const [owner, elsewhere] = [
      await open(`${redis().url}?prefix=${prefix}`),
      await open(`${redis().url}?prefix=${prefix}`),
    ]
    const readers = Array.from({ length: 500 }, () => readAll(elsewhere, 'r', 0, live()))
    const channels = () => redis().command('PUBSUB', 'SHARDCHANNELS', `*${prefix}*live:r`)
    await expect.poll(channels).toContain(':live:r')
    await sleep(20)
    const [name] = /\S+:live:r/u.exec(await channels())!
    expect(await redis().command('PUBSUB', 'SHARDNUMSUB', name)).toContain(':1')
    await redis().command('CONFIG', 'RESETSTAT')
    await owner.log.append('r', 1, [startEntry('r')])
    for (let seq = 2; seq < 50; seq++) await owner.log.append('r', 1, [delta(seq)])
    await owner.log.append('r', 1, [endEntry(50)])
    for (const reader of readers) expect(seqs(await reader)).toEqual(upTo(50))
    expect(await redis().command('INFO', 'commandstats')).not.toContain('cmdstat_xrange')
    await expect.poll(channels).not.toContain(':live:r')
  })

  test('a writer that is the owner no longer is fenced, and its readers get what the new owner writes', async () => {
    const prefix = freshPrefix()
    const [old, next] = [await open(`${redis().url}?prefix=${prefix}`), await open(`${redis().url}?prefix=${prefix}`)]
    await old.log.append('r', 1, [startEntry('r'), delta(2)])
    const reader = readAll(old, 'r', 0, live())
    // Running elsewhere, and nobody says that its owner is dead.
    expect(await next.log.claim('r', 1)).toBe(false)
    await old.fleet.want('r')
    expect(await next.log.claim('r', 1)).toBe(true)
    expect(await next.log.append('r', 2, [delta(3)])).toBe('stored')
    expect(await old.log.append('r', 1, [delta(3)])).toBe('fenced')
    expect(await old.log.append('r', 2, [delta(4)])).toBe('fenced')
    await next.log.append('r', 2, [endEntry(4)])
    expect(seqs(await reader)).toEqual(upTo(4))
  })

  test('while Redis is away for longer than writes wait, they are refused, and the store works on afterwards', async () => {
    const own = await startRedis()
    const store = await open(`${own.url}?prefix=p`, { timeoutMs: 200 })
    await store.log.append('r', 1, [startEntry('r')])
    own.freeze()
    const failed = { code: 'store-failed', status: 503, detail: expect.stringContaining(own.url) }
    await expect(store.log.append('r', 1, [delta(2)])).rejects.toMatchObject(failed)
    await expect(store.runs.get('r')).rejects.toMatchObject(failed)
    own.thaw()
    // It was written all the same, as soon as Redis could.
    await expect.poll(async () => (await store.runs.get('r'))?.lastSeq).toBe(2)
    expect(await store.log.append('r', 1, [delta(2)])).toBe('duplicate')
    expect(await store.log.append('r', 1, [delta(3)])).toBe('stored')
    await own.close()
  })
})

describeRedis('Redis that loses its last second', () => {
  test('its owners write it again: entries, claims, messages and forks, and nobody who reads sees a gap', async () => {
    const server = await startLossyRedis()
    const [first, second, third] = await Promise.all([0, 1, 2].map(() => open(`${server.url}?prefix=p`)))
    await first!.log.append('r', 1, [startEntry('r'), delta(2)])
    await first!.log.append('handed', 1, [startEntry('handed')])
    const readers = ['r', 'handed', 'new', 'fork', 'late'].map((run) => readAll(third!, run, 0, live()))
    await server.remember()
    for (let seq = 3; seq < 20; seq++) await first!.log.append('r', 1, [delta(seq)])
    await first!.log.append('new', 1, [startEntry('new')])
    await first!.log.append('handed', 1, [delta(2)])
    await first!.fleet.want('handed')
    expect(await second!.log.claim('handed', 1)).toBe(true)
    await second!.log.append('handed', 2, [delta(3)])
    await third!.log.post('r', 'answer:1', 'yes')
    await first!.log.fork('r', 12, 'fork')
    expect(await first!.log.claim('fork', 1)).toBe(true)
    await first!.log.append('fork', 2, [delta(13)])
    // Begun by one and gone on by another, all in the last second.
    await first!.log.append('late', 1, [startEntry('late')])
    await first!.fleet.want('late')
    expect(await third!.log.claim('late', 1)).toBe(true)
    await third!.log.append('late', 2, [delta(2)])
    await third!.fleet.want('late')
    expect(await second!.log.claim('late', 2)).toBe(true)
    await second!.log.append('late', 3, [delta(3)])
    await server.kill()
    // Who asks meanwhile, or is back sooner than the one who had said it, does not win, and is not told of an older state.
    const contrary = [first!, second!].map((store) => store.log.post('r', 'answer:1', 'no'))
    const row = second!.runs.get('r')
    await server.lose()
    expect(await row).toMatchObject({ lastSeq: 19 })
    for (const posted of contrary) expect(await posted).toEqual({ first: false, message: 'yes' })
    expect(await third!.log.post('r', 'answer:1', 'no')).toEqual({ first: false, message: 'yes' })
    expect(await first!.log.append('r', 1, [endEntry(20)])).toBe('stored')
    expect(await first!.log.append('new', 1, [endEntry(2)])).toBe('stored')
    expect(await second!.log.append('handed', 2, [endEntry(4)])).toBe('stored')
    expect(await first!.log.append('fork', 2, [endEntry(14)])).toBe('stored')
    expect(await second!.log.append('late', 3, [endEntry(4)])).toBe('stored')
    const read = await Promise.all(readers)
    expect(read.map(seqs)).toEqual([upTo(20), upTo(4), upTo(2), upTo(14), upTo(4)])
    const fresh = await open(`${server.url}?prefix=p`)
    expect(seqs(await readAll(fresh, 'r'))).toEqual(upTo(20))
    expect(seqs(await readAll(fresh, 'handed'))).toEqual(upTo(4))
    expect(await fresh.runs.get('handed')).toMatchObject({ epoch: 2, status: 'completed' })
    expect((await readAll(fresh, 'fork'))[0]).toMatchObject({ runId: 'fork', forkedFrom: { runId: 'r', seq: 12 } })
    expect((await fresh.runs.list()).map(({ id }) => id).toSorted()).toEqual(['fork', 'handed', 'late', 'new', 'r'])
    await server.close()
  })

  test('together with the owner: a reader gets an error, also one that comes back, and never what follows something else', async () => {
    const server = await startLossyRedis()
    const [owner, elsewhere] = [await redisStore(`${server.url}?prefix=p`), await open(`${server.url}?prefix=p`)]
    await owner.log.append('r', 1, [startEntry('r'), delta(2)])
    const reader = follow(elsewhere, 'r')
    await server.remember()
    await owner.log.append('r', 1, [delta(3), delta(4)])
    // Nothing is lost for a reader that has not seen it.
    await expect.poll(() => reader.seen).toEqual(upTo(4))
    const ofFork = follow(elsewhere, 'fork')
    await owner.log.fork('r', 4, 'fork')
    await expect.poll(() => ofFork.seen).toEqual(upTo(4))
    await server.kill()
    await owner.close()
    await server.lose()
    const back = follow(await open(`${server.url}?prefix=p`), 'r', 4)
    const readers = { reader, ofFork, back }
    const lost = { ended: expect.objectContaining({ code: 'store-lost' }) }
    await expect.poll(() => readers).toMatchObject({ reader: lost, ofFork: lost, back: lost })
    expect(readers).toMatchObject({ reader: { seen: upTo(4) }, ofFork: { seen: upTo(4) }, back: { seen: [] } })
    expect(seqs(await readAll(elsewhere, 'r'))).toEqual([1, 2])
    // Who has seen more does not leave the view of it.
    await elsewhere.runs.keepView('r', 4, { text: 'lost' })
    expect(await elsewhere.runs.view('r')).toBeUndefined()
    await elsewhere.runs.keepView('r', 2, { text: 'left' })
    expect(await elsewhere.runs.view('r')).toMatchObject({ seq: 2 })
    await server.close()
  })

  test('frozen for four seconds: writes wait, nothing is lost, nobody is refused', async () => {
    const server = await startLossyRedis()
    const [owner, elsewhere] = await Promise.all([0, 1].map(() => open(`${server.url}?prefix=p`)))
    await owner!.log.append('r', 1, [startEntry('r')])
    const readers = [owner!, elsewhere!].map((each) => readAll(each, 'r', 0, live()))
    server.freeze()
    const appends = upTo(40)
      .slice(1)
      .map((seq) => owner!.log.append('r', 1, [delta(seq)]))
    await sleep(4000)
    server.thaw()
    expect(new Set(await Promise.all(appends))).toEqual(new Set(['stored']))
    await owner!.log.append('r', 1, [entry(41, { type: 'suspend', requests: [] })])
    await owner!.log.claim('r', 1)
    await owner!.log.append('r', 2, [endEntry(42)])
    for (const reader of readers) expect(seqs(await reader)).toEqual(upTo(42))
    await server.close()
  })
})

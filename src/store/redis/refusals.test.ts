/** A Redis that is connected and takes no writes: what is written waits, as if it were away. And one that says nothing any more. */
import { afterEach, expect, test } from 'vitest'
import { startRedisProxy } from '../../../test/support/redis-proxy.ts'
import { describeRedis, startRedis, type RedisServer } from '../../../test/support/redis.ts'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import { delta, live, readAll } from '../contract/tools.contract.ts'
import { endEntry, startEntry } from '../example-run.contract.ts'
import { redisStore } from './redis-store.ts'

const stores: Store[] = []
const servers: { close(): unknown }[] = []
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()))
  for (const server of servers.splice(0)) await server.close()
})

async function open(url: string): Promise<Store> {
  const store = await redisStore(`${url}?prefix=p`)
  stores.push(store)
  return store
}

async function start(): Promise<RedisServer> {
  const server = await startRedis()
  servers.push(server)
  return server
}

const seqs = (entries: readonly Entry[]) => entries.map(({ seq }) => seq)
const isConnected = async (store: Store) => (await store.status!()).connected

/** What is written in between is stored, once and in order. */
async function writesWait(store: Store, other: Store, begin: () => Promise<unknown>, end: () => Promise<unknown>) {
  await store.log.append('r', 1, [startEntry('r')])
  await store.log.append('s', 1, [startEntry('s')])
  await store.fleet.want('s')
  const reader = readAll(other, 'r', 0, live())
  await begin()
  const writes = Promise.all([
    store.log.append('r', 1, [delta(2)]),
    store.log.append('r', 1, [delta(3), delta(4)]),
    store.log.post('r', 'answer:1', 'yes'),
    store.log.claim('s', 1),
    store.runs.keepView('r', 1, {}),
  ])
  let isDone = false
  const done = () => void (isDone = true)
  writes.then(done, done)
  await expect.poll(() => isConnected(store)).toBe(false)
  expect(isDone).toBe(false)
  await end()
  expect(await writes).toEqual(['stored', 'stored', { first: true, message: 'yes' }, true, undefined])
  await expect.poll(() => isConnected(store)).toBe(true)
  await store.log.append('r', 1, [endEntry(5)])
  expect(seqs(await reader)).toEqual([1, 2, 3, 4, 5])
}

describeRedis('writes wait while Redis', () => {
  test('is a replica, and is the primary again', async () => {
    const server = await start()
    const [store, other] = [await open(server.url), await open(server.url)]
    const nobody = ['REPLICAOF', '127.0.0.1', '1']
    await writesWait(
      store,
      other,
      () => server.command(...nobody),
      () => server.command('REPLICAOF', 'NO', 'ONE'),
    )
  })

  test('has become a replica, and its name is that of the new primary', async () => {
    const [old, next] = [await start(), await start()]
    await next.command('REPLICAOF', '127.0.0.1', String(old.port))
    const proxy = await startRedisProxy(old.port)
    servers.push(proxy)
    const [store, other] = [await open(proxy.url), await open(proxy.url)]
    await expect.poll(() => next.command('INFO', 'replication')).toContain('master_link_status:up')
    await writesWait(
      store,
      other,
      async () => {
        await expect
          .poll(() => old.command('INFO', 'replication'))
          .toMatch(/offset=(\d+),lag=0[^]*master_repl_offset:\1\r/u)
        await next.command('REPLICAOF', 'NO', 'ONE')
        await old.command('REPLICAOF', '127.0.0.1', String(next.port))
      },
      async () => proxy.move(next.port),
    )
    expect(seqs(await readAll(await open(next.url), 'r'))).toEqual([1, 2, 3, 4, 5])
  })

  test('has fewer replicas than it needs', async () => {
    const server = await start()
    const [store, other] = [await open(server.url), await open(server.url)]
    const need = (count: string) => server.command('CONFIG', 'SET', 'min-replicas-to-write', count)
    await writesWait(
      store,
      other,
      () => need('1'),
      () => need('0'),
    )
  })

  test('runs a long script of somebody else', async () => {
    const server = await start()
    const [store, other] = [await open(server.url), await open(server.url)]
    await server.command('CONFIG', 'SET', 'busy-reply-threshold', '10')
    let script: Promise<unknown> | undefined
    await writesWait(
      store,
      other,
      async () => {
        script = server.command('EVAL', 'while true do end', '0').catch(() => undefined)
        await expect.poll(() => server.command('PING').catch(String)).toContain('BUSY')
      },
      () => server.command('SCRIPT', 'KILL'),
    )
    await script
  })
})

describeRedis('a connection on which nothing comes through any more', () => {
  test('is noticed within seconds; what was sent on it is sent again', async () => {
    const server = await start()
    const proxy = await startRedisProxy(server.port)
    servers.push(proxy)
    const [store, other] = [await open(proxy.url), await open(server.url)]
    await writesWait(
      store,
      other,
      // New connections are refused, so that the time without one is long enough to be seen.
      async () => proxy.freeze(),
      async () => proxy.allow(),
    )
    const reader = readAll(store, 'heard', 0, live())
    await other.log.append('heard', 1, [startEntry('heard'), endEntry(2)])
    expect(seqs(await reader)).toEqual([1, 2])
  })
})

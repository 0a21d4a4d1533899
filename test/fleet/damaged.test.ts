/**
 * What is damaged in Redis, by hand, by another program or by a copy that was cut off, hurts its own run only. Each kind of key and field is damaged
 * with each kind of garbage; then every list is looked at, and the runs beside it go on.
 */
import { afterEach, expect, test, vi } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { collect, delta, readAll } from '../../src/store/contract/tools.contract.ts'
import { suspendedRun } from '../../src/store/contract/views.contract.ts'
import { endEntry, exampleRun, startEntry } from '../../src/store/example-run.contract.ts'
import { partitionOf } from '../../src/store/redis/keys.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { foldLog, viewOf } from '../../src/fold/read-view.ts'
import { createEngine, type Engine } from '../support/engine.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'

const garbage = {
  'no JSON': () => '{oops',
  'a part': (before: string) => before.slice(0, Math.ceil(before.length / 2)),
  'a huge number': () => '1e300',
  'a whole number that is too large': () => '99999999999999999999',
  'a negative number': () => '-7',
  nothing: () => '',
  'JSON of another kind': () => '["x", null]',
  null: () => 'null',
}

/** Names in one partition, so that what is damaged lies beside what is looked at. */
const [ended, waiting, going, well, asks, ...fresh] = Array.from({ length: 2000 }, (_, i) => `run_${i}`).filter(
  (id) => partitionOf(id) === 3,
) as [string, string, string, string, string, ...string[]]
const victims = [ended, waiting, going]
/** Whose limits and positions lie there as well. */
const somebody = fresh.at(-1)!
const hour = 3_600_000

describeRedis('Redis with damaged keys', (redis) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.close()
  })

  async function plant() {
    const prefix = freshPrefix()
    const url = `${redis().url}?prefix=${prefix}`
    const store = await redisStore(url)
    const other = await redisStore(url)
    const engine = createEngine({
      agents: {},
      wrapStore: (inner) => {
        void inner.close()
        return store
      },
    })
    engines.push(engine)
    const began = Date.now()
    const dated = <T extends { timestamp: number }>(entries: readonly T[]) =>
      entries.map((each, i): T => ({ ...each, timestamp: began + i }))
    const told = { input: { messages: [{ role: 'user', content: `Tell me of tea` }] } }
    const example = (run: string) =>
      dated([startEntry(run, { threadId: `of ${run}`, ...told }), ...exampleRun(run).slice(1)])
    for (const run of [ended, well]) {
      const fold = await foldLog(oneBatch(example(run)))
      await store.log.append(run, 1, example(run), () => viewOf(fold!))
    }
    for (const run of [waiting, asks]) {
      const entries = dated(suspendedRun(run, began + hour))
      await store.log.append(run, 1, [startEntry(run, { threadId: `of ${run}` }, began), ...entries.slice(1)])
      await store.log.post(run, 'answer:a', { answer: { kind: 'approval', approved: true } })
    }
    await other.log.append(going, 1, dated([startEntry(going, { threadId: `of ${going}` }), delta(2)]))
    const tag = `{${prefix}:3}`
    const command = async (...args: string[]) => (await redis().command(...args)).split('\r\n')
    return { store, other, engine, prefix, tag, command, close: () => other.close() }
  }

  type Planted = Awaited<ReturnType<typeof plant>>

  function asking(runtime: Engine['runtime']) {
    const reported: unknown[] = []
    const handler = createHandler({ runtime, authorize: () => true, onError: (error) => void reported.push(error) })
    const get = async (path: string) => {
      const response = await handler(new Request(`http://localhost${path}`))
      return { status: response.status, text: await response.text() }
    }
    return { get, reported }
  }

  async function lists(get: ReturnType<typeof asking>['get'], done: number): Promise<void> {
    const since = new Date(Date.now() - hour).toISOString()
    const paths = [
      '/api/runs',
      '/api/runs?status=completed',
      '/api/runs?agent=echo',
      `/api/runs?thread=of ${well}`,
      `/api/runs?since=${since}`,
      '/api/runs?q=tea',
      ...(done > 0 ? [`/api/runs?before=${fresh[done]}`] : []),
      '/api/threads',
      '/api/threads?q=tea',
      `/api/threads/of ${well}`,
    ]
    for (const path of paths) {
      const { status, text } = await get(path)
      expect([path, status, text.includes(`"${well}"`)], `${path}: ${text}`).toEqual([path, 200, true])
      expect(text).not.toMatch(/:null[,}]/u)
    }
  }

  async function lookAtAll({ store, other, engine: { runtime } }: Planted, done: number): Promise<void> {
    const { get, reported } = asking(runtime)
    await lists(get, done)
    for (const path of ['/api/stats', '/api/stats?window=1h', '/metrics', '/health', '/api/agents']) {
      const { status, text } = await get(path)
      expect([path, status], text).toEqual([path, 200])
    }
    // Each victim says itself what is wrong, and never that the server is to blame.
    for (const run of victims) {
      for (const path of ['', '/events?follow=0', '/export']) {
        const { status, text } = await get(`/api/runs/${run}${path}`)
        expect([200, 404, 410, 500, 503], `${path}: ${text}`).toContain(status)
        expect(text).not.toContain('"internal"')
      }
    }
    expect(await readAll(store, well)).toHaveLength(exampleRun(well).length)
    const changes = await collect(store.log.changes())
    expect(changes.map(({ run }) => run)).toContain(fresh[done]!)
    expect(await store.log.position()).toBeLessThan(2 ** 53)
    expect((await store.runs.due(Date.now() + 2 * hour)).map(({ id }) => id)).toContain(asks)
    const living = async () => (await store.fleet.processes!()).filter(({ alive }) => alive).map(({ self }) => self)
    await expect.poll(living).toEqual([true, false])
    for (const { beatAgeMs } of await store.fleet.processes!()) expect(beatAgeMs).toBeGreaterThanOrEqual(0)
    const leave = new AbortController()
    const first = await store.fleet.wanted(leave.signal)[Symbol.asyncIterator]().next()
    leave.abort()
    expect(first.value).toContain(asks)
    expect((await store.upkeep!.expired(Infinity)).runs.map(({ id }) => id)).toContain(fresh[done]!)
    expect(await store.upkeep!.uncompacted(Infinity, 1000)).toContain(fresh[done]!)
    expect(await store.upkeep!.marks([well, ...victims])).toHaveLength(4)
    expect(await store.limits!.occupy(somebody, 1000)).toBeDefined()
    expect(reported.map(String).filter((text) => !/store-(?:failed|damaged|lost)|MillraceError/u.test(text))).toEqual(
      [],
    )
    expect((await other.status!()).connected).toBe(true)
  }

  /** A run begins, is taken over and ends. */
  async function goOn({ store, other }: Planted, done: number): Promise<void> {
    const run = fresh[done]!
    const last = { ...endEntry(4), timestamp: Date.now() }
    expect(await store.log.append(run, 1, [startEntry(run, {}, Date.now()), delta(2)])).toBe('stored')
    await store.fleet.want(run)
    expect(await other.log.claim(run, 1)).toBe(true)
    expect(await other.log.append(run, 2, [delta(3), last])).toBe('stored')
    expect(await store.log.post(run, 'k', 1)).toMatchObject({ first: true })
    expect(await store.runs.get(run)).toMatchObject({ status: 'completed', lastSeq: 4 })
  }

  const fields = 'row epoch seq at status owner token n agent thread started title view viewSeq archive passed'.split(
    ' ',
  )

  test.each(fields)('the field %s of a run', async (field) => {
    const planted = await plant()
    let done = 0
    for (const [what, make] of Object.entries(garbage)) {
      for (const run of victims) {
        const key = `${planted.tag}:run:${run}`
        const [, ...before] = await planted.command('HGET', key, field)
        await planted.command('HSET', key, field, make(before.join('\r\n')))
      }
      try {
        await goOn(planted, ++done)
        await lookAtAll(planted, done)
      } catch (error) {
        throw new Error(`${what}: ${(error as Error).message}`, { cause: error })
      }
    }
    // What comes in one script with a run that is damaged is done.
    const { other, engine } = planted
    const claims = Promise.allSettled(victims.map((run) => other.log.claim(run, 1)))
    expect(await other.log.append(fresh[done + 1]!, 1, [startEntry(fresh[done + 1]!)])).toBe('stored')
    await claims
    await engine.runtime.recover()
    await planted.close()
  })

  type Damage = (planted: Planted) => Promise<unknown>

  /** Puts another kind of value under a key. */
  const replace =
    (key: string, ...make: string[]): Damage =>
    async ({ command, tag }) => {
      const full = key.startsWith('{') ? key : `${tag}:${key}`
      // At once: a heartbeat must not make the key anew in between.
      const script = "redis.call('DEL', KEYS[1]) return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))"
      await command('EVAL', script, '1', full, ...make)
    }

  /** Of each victim. */
  const ofVictims =
    (kind: string, ...make: string[]): Damage =>
    async (planted) => {
      for (const run of victims) await replace(`${kind}:${run}`, ...make)(planted)
    }

  test.each<[string, Damage[]]>([
    [
      'the hash of a run',
      [ofVictims('run', 'SET', 'x'), ofVictims('run', 'RPUSH', 'x'), ofVictims('run', 'HSET', 'x', 'y')],
    ],
    [
      'the log of a run',
      [
        ofVictims('log', 'SET', 'x'),
        ...Object.values(garbage).map((make) => ofVictims('log', 'XADD', '1-0', 'e', make('{"seq":1}'))),
        ofVictims('log', 'XADD', '99999999999-7', 'x', 'y'),
      ],
    ],
    ['the inbox of a run', [ofVictims('inbox', 'SET', 'x'), ofVictims('inbox', 'HSET', 'answer:a', 'x')]],
    ['the messages to a run', [ofVictims('messages', 'SET', 'x'), ofVictims('messages', 'RPUSH', 'x', '', 'a\nb\n{')]],
    [
      'the clock of a partition',
      [replace('clock', 'RPUSH', 'x'), ...Object.values(garbage).map((make) => replace('clock', 'SET', make('12345')))],
    ],
    [
      'how far clocks were ahead',
      [replace('ahead', 'RPUSH', 'x'), ...Object.values(garbage).map((make) => replace('ahead', 'SET', make('12345')))],
    ],
    ['what is due', [replace('due', 'SET', 'x'), replace('due', 'HSET', 'x', 'y')]],
    ['the changes', [replace('changes', 'SET', 'x'), replace('changes', 'XADD', '5-0', 'x', 'y')]],
    ['what has ended', [replace('ended', 'SET', 'x'), replace('compacted', 'SET', 'x')]],
    ['places', [replace(`places:${somebody}`, 'SET', 'x'), replace(`places:${somebody}`, 'ZADD', 'inf', 'x')]],
  ])('%s', async (_, damages) => {
    const planted = await plant()
    for (const [i, damage] of damages.entries()) {
      await damage(planted)
      try {
        await goOn(planted, i + 1)
        await lookAtAll(planted, i + 1)
      } catch (error) {
        throw new Error(`${i}: ${(error as Error).message}`, { cause: error })
      }
    }
    await planted.engine.runtime.recover()
    await expect.poll(async () => (await planted.store.runs.get(asks))?.status).not.toBe('suspended')
    await planted.close()
  })

  test('the keys of the fleet', async () => {
    const planted = await plant()
    const { store, other, prefix, command } = planted
    const fleet = (name: string) => `{${prefix}:fleet}:${name}`
    const id = (await store.fleet.processes!())[0]!.id
    const beat = (score: string, member: string) => vi.waitFor(() => command('ZADD', fleet('beats'), score, member))
    const wholeOf = (name: string) => [replace(fleet(name), 'SET', 'x'), replace(fleet(name), 'HSET', 'x', 'y')]
    const damages: Damage[] = [
      ...['beats', 'takers'].flatMap(wholeOf),
      replace(fleet(`process:${id}`), 'SET', 'x'),
      ...['1e300', 'inf', '-7', '0'].map((score) => () => beat(score, 'nobody')),
      () => beat('1e300', id),
      () => command('SADD', fleet('takers'), '', '{oops'),
      ...Object.values(garbage).map(
        (make) => () =>
          command('HSET', fleet(`process:${id}`), 'pid', make('1'), 'host', make('h'), 'draining', make('x')),
      ),
      replace(`owned:${id}`, 'SET', 'x'),
    ]
    for (const [i, damage] of damages.entries()) {
      await damage(planted)
      await goOn(planted, i + 1)
      await expect
        .poll(async () => (await store.fleet.processes!()).filter(({ alive }) => alive).map(({ self }) => self), {
          message: `${i}`,
        })
        .toEqual([true, false])
      await lookAtAll(planted, i + 1)
      for (const { pid } of await store.fleet.processes!()) expect(pid ?? 1).toSatisfy(Number.isSafeInteger)
    }
    // What a process owns is found out again: another one takes it over.
    expect(await store.log.append('mine', 1, [startEntry('mine')])).toBe('stored')
    const wanted = other.fleet.wanted(new AbortController().signal)[Symbol.asyncIterator]()
    await wanted.next()
    await command('SET', `{${prefix}:${partitionOf('mine')}}:owned:${id}`, 'x')
    const next = wanted.next()
    await store.close()
    expect((await next).value).toContain('mine')
    await other.close()
  })

  test('rates and positions', async () => {
    const { store, tag, command, close } = await plant()
    const rate = `${tag}:rate:${somebody}`
    for (const text of [...Object.values(garbage).map((make) => make('12')), String(Date.now() + 1e9)]) {
      await command('SET', rate, text)
      expect(await store.limits!.take(somebody, { count: 1, perMs: hour })).toBe(0)
      expect(await store.limits!.take(somebody, { count: 1, perMs: hour })).toBeGreaterThan(0)
      await command('SET', `${tag}:position:${somebody}`, text.replace(/^\d+$/u, 'x'))
      expect(await store.positions!.get(somebody)).toBeUndefined()
    }
    await command('DEL', rate)
    await command('RPUSH', rate, 'x')
    expect(await store.limits!.take(somebody, { count: 1, perMs: hour })).toBe(0)
    await store.positions!.keep(somebody, 7, 'somebody')
    expect(await store.positions!.get(somebody)).toEqual({ position: 7, by: 'somebody' })
    await close()
  })

  test('what cannot be found out again is refused by its name, and everything else goes on', async () => {
    const planted = await plant()
    const { store, tag, command } = planted
    for (const [i, name] of ['ids', 'agent:echo', 'status:running', 'thread:thread-1', 'words'].entries()) {
      await command('RENAME', `${tag}:${name}`, `${tag}:kept`).catch(() => undefined)
      await command('SET', `${tag}:${name}`, 'x')
      await lists(asking(planted.engine.runtime).get, 0)
      const told = { input: { messages: [{ role: 'user', content: 'Tell me' }] } }
      const refused = store.log.append(fresh[i]!, 1, [startEntry(fresh[i]!, told, Date.now())])
      await expect(refused, name).rejects.toMatchObject({
        code: 'store-damaged',
        message: expect.stringContaining(`${tag}:${name}`),
      })
      await command('DEL', `${tag}:${name}`)
      await command('RENAME', `${tag}:kept`, `${tag}:${name}`).catch(() => undefined)
    }
    await replace('runs', 'SET', 'x')(planted)
    await expect(store.runs.list()).rejects.toMatchObject({
      code: 'store-damaged',
      message: expect.stringContaining(`${tag}:runs`),
    })
    expect((await store.runs.get(well))?.status).toBe('completed')
    expect(await store.log.append('elsewhere', 1, [startEntry('elsewhere')])).toBe('stored')
    await planted.close()
  })
})

async function* oneBatch<T>(batch: T): AsyncGenerator<T> {
  yield batch
}

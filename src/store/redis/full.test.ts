/** A Redis that is full: every write is refused with `store-failed`, nothing of it is stored, and what reads, makes room or lives on works. */
import type { NewAuditRow } from '../../part/audit.ts'
import type { NewFeedback } from '../../part/feedback.ts'
import { testRow } from '../contract/test-results.contract.ts'
import type { ThreadTitle } from '../../part/thread-title.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import type { Store } from '../../part/log.ts'
import { openArchive } from '../archive/archive.ts'
import { readAll } from '../contract/tools.contract.ts'
import { exampleRun, startEntry } from '../example-run.contract.ts'
import { redisStore } from './redis-store.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-redis-full-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const whole = exampleRun('whole')
const small = [startEntry('small', { threadId: 'other' }), ...exampleRun('small').slice(1)]
const live = () => AbortSignal.timeout(10_000)

/** Functions of a store, by their place in it. */
type Table = Record<string, (store: Store) => unknown>

/** For the store itself, and for its end. */
const inside = new Set(['close', 'fleet.dead', 'fleet.claimed', 'fleet.start', 'fleet.close', 'limits.close'])

const auditRow: NewAuditRow = {
  time: 1,
  principal: 'u',
  tenant: 'acme',
  key: '',
  action: 'runs.stop',
  resource: 'small',
  outcome: 'done',
  address: '',
}

const feedbackRow: NewFeedback = { run: 'small', user: 'u', tenant: 'acme', verdict: 'up', time: 1 }

const titleRow: ThreadTitle = { thread: 'thread-1', title: 'Small', user: 'u', tenant: 'acme', time: 1 }

/** What writes: each has to be refused. */
const refused: Table = {
  'log.append': (store) => store.log.append('small', 1, small.slice(3)),
  'log.append of a new run': (store) => store.log.append('new', 1, exampleRun('new')),
  'log.append with a view': (store) => store.log.append('small', 1, small.slice(3), () => ({ seq: 4, view: {} })),
  'log.claim': (store) => store.log.claim('small', 1),
  'log.post': (store) => store.log.post('small', 'stop', { reason: 'x' }),
  'log.postAll': (store) => store.log.postAll('small', [{ key: 'answer:a', message: {} }]),
  'log.fork': (store) => store.log.fork('whole', 2, 'fork'),
  'runs.keepView': (store) => store.runs.keepView('small', 2, { messages: [] }),
  'fleet.want': (store) => store.fleet.want('small', Date.now() + 60_000),
  'fleet.pass': (store) => store.fleet.pass!('small'),
  'ledger.add': (store) => store.ledger!.add('acme', [{ key: 'tokens', amount: 1, until: Date.now() + 60_000 }]),
  'audit.add': (store) => store.audit!.add(auditRow),
  'titles.put': (store) => store.titles!.put(titleRow),
  'feedback.put': (store) => store.feedback!.put(feedbackRow),
  'testResults.add': (store) => store.testResults!.add(testRow()),
}

/** What reads, makes room or keeps the processes together: each has to work. */
const works: Table = {
  'log.read': (store) => readAll(store, 'whole'),
  'log.inbox': async (store) => {
    for await (const _ of store.log.inbox('small'));
  },
  'log.changes': async (store) => {
    for await (const _ of store.log.changes({ signal: live() })) break
  },
  'log.position': (store) => store.log.position(),
  'runs.get': (store) => store.runs.get('whole'),
  'runs.list': (store) => store.runs.list({ q: 'hello' }),
  'runs.due': (store) => store.runs.due(Date.now()),
  'runs.view': (store) => store.runs.view('whole'),
  'fleet.wanted': async (store) => {
    for await (const _ of store.fleet.wanted(live())) break
  },
  'fleet.attend': (store) => store.fleet.attend('small')(),
  'fleet.attended': (store) => store.fleet.attended('small'),
  'fleet.processes': (store) => store.fleet.processes!(),
  'fleet.introduce': (store) => store.fleet.introduce!({ draining: true }),
  'limits.take': (store) => store.limits!.take('key', { count: 1, perMs: 1000 }),
  'limits.occupy': async (store) => (await store.limits!.occupy('key', 1))!.leave(),
  'positions.get': (store) => store.positions!.get('reader'),
  'positions.keep': (store) => store.positions!.keep('reader', 1, 'me'),
  'ledger.read': (store) => store.ledger!.read('acme', ['tokens']),
  'ledger.mark': (store) => store.ledger!.mark('acme', 'small'),
  'audit.list': (store) => store.audit!.list(),
  'testResults.of': (store) => store.testResults!.of('a/b'),
  'testResults.rename': (store) => store.testResults!.rename(testRow().test, 'a/c'),
  'testResults.forget': (store) => store.testResults!.forget('a/b'),
  'titles.of': (store) => store.titles!.of(['thread-1']),
  'feedback.of': (store) => store.feedback!.of('small'),
  'feedback.list': (store) => store.feedback!.list(),
  'feedback.remove': (store) => store.feedback!.remove(feedbackRow),
  'audit.prune': (store) => store.audit!.prune(1),
  'upkeep.size': (store) => store.upkeep!.size(),
  'upkeep.uncompacted': (store) => store.upkeep!.uncompacted(Infinity, 10),
  'upkeep.compact': (store) => store.upkeep!.compact('whole'),
  'upkeep.unarchived': (store) => store.upkeep!.unarchived!(Infinity, 10),
  'upkeep.archive': (store) => store.upkeep!.archive!('whole'),
  'upkeep.expired': (store) => store.upkeep!.expired(Infinity),
  'upkeep.marks': (store) => store.upkeep!.marks(['whole']),
  'upkeep.drop': (store) => store.upkeep!.drop('whole'),
  'upkeep.vacuum': (store) => store.upkeep!.vacuum(),
  now: (store) => store.now!(),
  onStored: (store) => store.onStored!(() => undefined)(),
  status: (store) => store.status!(),
}

describeRedis('a full Redis', (redis) => {
  let prefix: string
  let store: Store
  const limit = (bytes: string) => redis().command('CONFIG', 'SET', 'maxmemory', bytes)
  /** Everything that is stored under the prefix, but what says when. */
  const stored = async () => {
    const keys = (await redis().command('KEYS', `*${prefix}*`)).split('\r\n').filter((each) => each.startsWith('{'))
    const dumps = keys
      .filter((key) => !/:(?:beats|process:\S+|clock)$/u.test(key))
      .toSorted()
      .map(async (key) => {
        // The order of its fields is not stored.
        const isHash = (await redis().command('TYPE', key)).includes('hash')
        const value = await redis().command(isHash ? 'HGETALL' : 'DUMP', key)
        return [key, isHash ? value.split('\r\n').toSorted() : value]
      })
    return Promise.all(dumps)
  }

  beforeEach(async () => {
    prefix = freshPrefix()
    store = await redisStore(`${redis().url}?prefix=${prefix}`, { archive: openArchive(join(root, prefix)) })
    await store.log.append('whole', 1, whole)
    await store.log.append('small', 1, small.slice(0, 3))
    await store.testResults!.add(testRow())
    await limit('1mb')
  })
  afterEach(async () => {
    await limit('0')
    await store.close()
  })

  test('each function of a store is in one of the two tables', () => {
    const places = (of: object, at = ''): string[] =>
      Object.entries(of).flatMap(([name, value]) =>
        typeof value === 'function' ? [at + name] : typeof value === 'object' ? places(value, `${at}${name}.`) : [],
      )
    const named = new Set([...Object.keys(refused), ...Object.keys(works)].map((each) => each.split(' ')[0]))
    expect(places(store).filter((place) => !inside.has(place) && !named.has(place))).toEqual([])
  })

  test.each(Object.entries(refused))('%s is refused, and nothing of it is stored', async (_, write) => {
    const before = await stored()
    await expect(write(store)).rejects.toMatchObject({ code: 'store-failed', detail: expect.stringContaining('OOM') })
    expect(await stored()).toEqual(before)
    await limit('0')
    await write(store)
    expect(await stored()).not.toEqual(before)
  })

  test.each(Object.entries(works))('%s works', async (_, act) => {
    await act(store)
  })
})

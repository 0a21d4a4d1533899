/**
 * What the vitest project `redis` has in the place of `src/store/sqlite/store.ts`: the same tests, with Redis behind them. A path is a prefix
 * of keys: opened again, it holds what was stored there.
 */
import { createHash } from 'node:crypto'
import { inject } from 'vitest'
import type { Feedback } from '../../src/part/feedback.ts'
import type { TestResults } from '../../src/part/test-result.ts'
import type { Log, RunIndex, Store } from '../../src/part/log.ts'
import type { ThreadTitles } from '../../src/part/thread-title.ts'
import type { Upkeep } from '../../src/part/upkeep.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'

export type { SqliteOptions } from '../../src/store/sqlite/store.ts'

export function sqliteStore(path: string): Store {
  const prefix = `t${createHash('sha256').update(path).digest('hex').slice(0, 12)}`
  return soon(redisStore(`${inject('redis')}?prefix=${prefix}`))
}

/** A store that is there at once, and whose methods wait until it is opened. */
function soon(opening: Promise<Store>): Store {
  // Whoever asks it for something is told.
  opening.catch(() => undefined)
  const read = <T>(iterate: (store: Store) => AsyncIterable<T>): AsyncIterable<T> => ({
    [Symbol.asyncIterator]() {
      const begun = opening.then((store) => iterate(store)[Symbol.asyncIterator]())
      begun.catch(() => undefined)
      return {
        next: async () => (await begun).next(),
        return: async () => (await (await begun).return?.()) ?? { done: true, value: undefined },
      }
    },
  })
  const later =
    <Room extends object>(roomOf: (store: Store) => Room) =>
    <Name extends keyof Room>(name: Name): Room[Name] =>
      (async (...args: never[]) => {
        const room = roomOf(await opening)
        return (room[name] as (...args: never[]) => unknown)(...args)
      }) as Room[Name]
  const log = later(({ log }) => log)
  const runs = later(({ runs }) => runs)
  const fleet = later(({ fleet }) => fleet)
  const limits = later(({ limits }) => limits!)
  const ledger = later((store) => store.ledger!)
  const audit = later((store) => store.audit!)
  const feedback = later((store) => store.feedback!)
  const testResults = later((store) => store.testResults!)
  const titles = later((store) => store.titles!)
  const upkeep = later(({ upkeep }) => upkeep!)
  return {
    log: {
      append: log('append'),
      claim: log('claim'),
      read: (...args) => read((store) => store.log.read(...args)),
      post: log('post'),
      postAll: log('postAll'),
      inbox: (...args) => read((store) => store.log.inbox(...args)),
      changes: (...args) => read((store) => store.log.changes(...args)),
      position: log('position'),
      fork: log('fork'),
    } satisfies Log,
    runs: {
      get: runs('get'),
      list: runs('list'),
      due: runs('due'),
      view: runs('view'),
      keepView: runs('keepView'),
    } satisfies RunIndex,
    fleet: {
      shared: true,
      wanted: (signal) => read((store) => store.fleet.wanted(signal)),
      want: fleet('want'),
      pass: async (run) => (await opening).fleet.pass?.(run),
      attend(run) {
        let hasLeft = false
        let leave: () => void = () => void (hasLeft = true)
        opening.then(
          (store) => {
            if (!hasLeft) leave = store.fleet.attend(run)
          },
          () => undefined,
        )
        return () => leave()
      },
      attended: fleet('attended'),
      processes: async () => (await opening).fleet.processes?.() ?? [],
      introduce: async (about) => (await opening).fleet.introduce?.(about),
    },
    upkeep: {
      size: upkeep('size'),
      uncompacted: upkeep('uncompacted'),
      compact: upkeep('compact'),
      expired: upkeep('expired'),
      drop: upkeep('drop'),
      marks: upkeep('marks'),
      vacuum: upkeep('vacuum'),
    } satisfies Upkeep,
    limits: { take: limits('take'), occupy: limits('occupy') },
    ledger: { add: ledger('add'), read: ledger('read'), mark: ledger('mark') },
    feedback: {
      put: feedback('put'),
      remove: feedback('remove'),
      of: feedback('of'),
      list: feedback('list'),
    } satisfies Feedback,
    testResults: {
      add: testResults('add'),
      of: testResults('of'),
      rename: testResults('rename'),
      forget: testResults('forget'),
    } satisfies TestResults,
    titles: { put: titles('put'), of: titles('of') } satisfies ThreadTitles,
    audit: { add: audit('add'), list: audit('list'), prune: audit('prune') },
    durable: true,
    close: async () => (await opening).close(),
  }
}

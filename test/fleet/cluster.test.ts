/** A cluster whose nodes fail, with stores and with whole instances on it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { openArchive } from '../../src/store/archive/archive.ts'
import { delta, live, readAll } from '../../src/store/contract/tools.contract.ts'
import { endEntry, exampleRun, startEntry } from '../../src/store/example-run.contract.ts'
import { redisStore, type RedisOptions } from '../../src/store/redis/redis-store.ts'
import { describeRedis, freshPrefix, startRedisCluster } from '../support/redis.ts'
import { endedRun, entryOf, followRun, startFleet, startRun } from './fleet.ts'

/** They lie in all partitions, so on all nodes. */
const runs = Array.from({ length: 48 }, (_, i) => `r${i}`)
const seqs = (entries: readonly Entry[]) => entries.map(({ seq }) => seq)
const isConnected = async (store: Store) => (await store.status!()).connected

async function startCluster(replicas: number) {
  const cluster = await startRedisCluster({ nodeTimeout: 1000, replicas })
  const stores: Store[] = []
  onTestFinished(async () => {
    await Promise.all(stores.map((store) => store.close()))
    await cluster.close()
  })
  const open = async (prefix: string, options?: RedisOptions) => {
    const store = await redisStore(`${cluster.nodes[1]!.url}?prefix=${prefix}`, options)
    stores.push(store)
    return store
  }
  return { ...cluster, open }
}

describeRedis('a cluster', () => {
  test.each([
    ['is killed', 'kill'],
    ['hangs', 'freeze'],
  ] as const)(
    'whose primary %s fails over to a replica that lacks the last second: it is written again, and nobody who reads sees a gap',
    async (_, how) => {
      const { nodes, open } = await startCluster(1)
      const [primary] = nodes as [(typeof nodes)[0]]
      const prefix = freshPrefix()
      const [owner, other] = [await open(prefix), await open(prefix)]
      await Promise.all(runs.map((run) => owner.log.append(run, 1, [startEntry(run), delta(2)])))
      const readers = runs.map((run) => readAll(other, run, 0, live()))
      // The replica is cut off: what is stored now is stored by the primary alone.
      await primary.command('ACL', 'SETUSER', 'default', '-psync', '-sync')
      await primary.command('CLIENT', 'KILL', 'TYPE', 'replica')
      await Promise.all(
        runs.map(async (run) => {
          await owner.log.append(run, 1, [delta(3)])
          expect(await other.log.post(run, 'answer', 'yes')).toMatchObject({ first: true })
          await owner.log.append(run, 1, [delta(4)])
        }),
      )
      if (how === 'kill') await primary.kill()
      else primary.freeze()
      // The store may have found the new primary before anybody sees that it had lost the old one.
      const isOver = async () => (await nodes[3]!.command('ROLE')).includes('master')
      await expect.poll(async () => (await isConnected(owner)) && !(await isOver())).toBe(false)
      const contrary = runs.map((run) => owner.log.post(run, 'answer', 'no'))
      const appends = runs.map((run) => owner.log.append(run, 1, [delta(5)]))
      expect(new Set(await Promise.all(appends))).toEqual(new Set(['stored']))
      for (const posted of contrary) expect(await posted).toEqual({ first: false, message: 'yes' })
      for (const store of [owner, other]) await expect.poll(() => isConnected(store)).toBe(true)
      await Promise.all(runs.map((run) => owner.log.append(run, 1, [endEntry(6)])))
      for (const reader of readers) expect(seqs(await reader)).toEqual([1, 2, 3, 4, 5, 6])
      if (how === 'freeze') primary.thaw()
    },
  )

  test('compacts, archives and deletes runs of all nodes', async () => {
    const { open } = await startCluster(0)
    const folder = mkdtempSync(join(tmpdir(), 'millrace-cluster-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const prefix = freshPrefix()
    const [store, other] = [
      await open(prefix, { archive: openArchive(folder) }),
      await open(prefix, { archive: openArchive(folder) }),
    ]
    const some = runs.slice(0, 24)
    const logs = new Map(some.map((run) => [run, exampleRun(run, 40)]))
    await Promise.all([...logs].map(([run, log]) => store.log.append(run, 1, log)))
    for (const run of some) {
      expect(await store.upkeep!.compact(run)).toMatchObject({ entriesBefore: logs.get(run)!.length })
      expect(await store.upkeep!.archive!(run)).toBe(true)
    }
    for (const run of some) expect((await readAll(other, run)).at(-1)).toEqual(logs.get(run)!.at(-1))
    expect((await other.runs.list({ limit: 100 })).map(({ id }) => id).toSorted()).toEqual([...some].toSorted())
    for (const run of some) expect(await other.upkeep!.drop(run)).toBe(true)
    expect(await store.runs.list()).toEqual([])
  })
})

describeRedis('instances on a cluster', () => {
  test('one is killed: the other goes on with its runs, and who reads there sees the log', async () => {
    const { nodes } = await startCluster(0)
    const agent = 'recover: true\nworkflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]'
    const fleet = await startFleet(nodes[0]!, { agent }, (reply, n) => {
      reply.say(`call ${n}`)
      if (n > 6) reply.finish()
    })
    onTestFinished(() => fleet.close())
    const [owner, other] = [await fleet.start(), await fleet.start()]
    const ids = await Promise.all(Array.from({ length: 6 }, (_, i) => startRun(owner, 'agent', `go ${i}`)))
    for (const id of ids) await entryOf(fleet.store, id, ({ type }) => type === 'text-delta')
    const followers = ids.map((id) => followRun(other, id))
    await owner.kill()
    for (const [i, id] of ids.entries()) {
      const entries = await endedRun(fleet.store, id)
      expect(entries.at(-1)).toMatchObject({ type: 'run-end', outcome: 'completed' })
      await followers[i]!.end
      expect(followers[i]!.lines).toEqual(entries.map((entry) => JSON.stringify(entry)))
    }
  })
})

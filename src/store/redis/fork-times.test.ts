import { expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { RunRow } from '../../part/log.ts'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import { readAll } from '../contract/tools.contract.ts'
import { entry, noon, startEntry } from '../example-run.contract.ts'
import { createKeys } from './keys.ts'
import { redisStore } from './redis-store.ts'

const at = (seq: number, ms: number, part: Parameters<typeof entry>[1], step = ''): Entry => ({
  ...entry(seq, part, step),
  timestamp: noon + ms,
})
const says = (seq: number, ms: number) => at(seq, ms, { type: 'text-delta', id: 't', delta: 'a' }, 'main/a/1')
const own = noon + 20_000

describeRedis('forks that an older version has made', (redis) => {
  test.each([
    ['has spoken', 7],
    ['has not spoken', undefined],
  ])('one that goes on and %s counts from its own first entry', async (_, firstTokenMs) => {
    const prefix = freshPrefix()
    const url = `${redis().url}?prefix=${prefix}`
    const before = await redisStore(url)
    await before.log.append('r', 1, [
      startEntry('r', {}, noon),
      at(2, 1, { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }, 'main/a'),
      at(3, 2, { type: 'text-start', id: 't' }, 'main/a/1'),
    ])
    await before.log.fork('r', 3, 'f')
    await before.log.append('f', 1, [at(4, 20_000, { type: 'suspend', requests: [] })])
    // As it was written then.
    const row = { ...(await before.runs.get('f')), open: [], startedAt: noon, answers: ['main/a'], firstTokenMs }
    await redis().command('HSET', createKeys(prefix).run('f'), 'row', JSON.stringify(row), 'started', String(noon))
    await before.close()

    const store = await redisStore(url)
    const rows: RunRow[] = []
    store.onStored!((changed) => void rows.push(changed))
    expect(await store.runs.get('f')).toMatchObject({ startedAt: own, status: 'suspended' })
    expect((await store.runs.list({ since: own })).map(({ id }) => id)).toEqual(['f'])
    const [start] = await readAll(store, 'f')
    expect(start).toMatchObject({ timestamp: noon, forkedFrom: { runId: 'r', seq: 3, at: own } })
    expect(await store.log.claim('f', 1)).toBe(true)
    const first = firstTokenMs === undefined ? 1000 - 100 : undefined
    await store.log.append('f', 2, [at(5, 20_100, { type: 'resume', protocol: 'api' }), says(6, 21_000)])
    const end = { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } } as const
    await store.log.append('f', 2, [at(7, 22_000, end)])
    for (const found of [rows.at(-1)!, (await store.runs.get('f'))!])
      expect([found.startedAt, found.endedAt, found.firstTokenMs]).toEqual([own, noon + 22_000, first])
    await store.close()
  })
})

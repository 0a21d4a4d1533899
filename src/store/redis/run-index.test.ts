/** Lists of runs from the sets of Redis: the same as from all rows, page by page, and nothing is left of dropped runs. */
import { expect, test } from 'vitest'
import { describeRedis, freshPrefix } from '../../../test/support/redis.ts'
import type { RunQuery, RunRow } from '../../part/log.ts'
import type { RunUser } from '../../part/principal.ts'
import { endEntry, entry, noon, startEntry } from '../example-run.contract.ts'
import { listRows } from '../run-query.ts'
import { partitionOf } from './keys.ts'
import { redisStore } from './redis-store.ts'

const long = 'https://example.com/a/very/long/address/that/is/one/word/and-has-no-spaces?at=all'
const titles = [
  'How do I cook Soup',
  'soup of the day',
  `Read ${long}`,
  'ÜBER den Wolken',
  '东京的天气怎么样今天会不会下雨请告诉我我要不要带伞',
  'İstanbul 100%',
  'so so so',
  '',
]

/** Some belong to no one, and users of two tenants have the same ids. */
function userOf(i: number): { user?: RunUser } {
  if (i % 3 === 0) return {}
  return { user: { id: `u${i % 5}`, ...(i % 4 !== 0 && { tenant: `t${i % 2}` }) } }
}

describeRedis('the index in redis', (redis) => {
  test('every query lists what a filter of all rows lists, in pages of any size', async () => {
    const store = await redisStore(`${redis().url}?prefix=${freshPrefix()}`)
    const count = 240
    for (let i = 0; i < count; i++) {
      const id = `run_${(i * 7919) % 1000}_${i}`
      const input = { messages: [{ role: 'user', content: titles[i % titles.length]! }] }
      const start = startEntry(
        id,
        { agent: `agent${i % 7}`, threadId: `thread${i % 50}`, input, ...userOf(i) },
        noon + ((i * 31) % count),
      )
      const more = [[], [endEntry(2)], [entry(2, { type: 'suspend', requests: [] })]][i % 3]!
      await store.log.append(id, 1, [start, ...more])
    }
    const all = (await store.runs.list({ limit: 1000 })).toReversed()
    expect(all.map(({ id }) => Number(id.split('_')[2]))).toEqual(Array.from({ length: count }, (_, i) => i))
    const queries: RunQuery[] = [
      { agent: 'agent3' },
      { agent: 'agent3', status: 'running' },
      { threadId: 'thread11' },
      { status: ['suspended', 'running'] },
      { status: ['failed', 'aborted'] },
      { since: noon + 210 },
      { since: noon + 210, agent: 'agent1', q: 'so' },
      { since: noon + count },
      { idPrefix: 'run_1' },
      { idPrefix: 'run_12', status: 'completed' },
      { idPrefix: 'run_', threadId: 'thread3' },
      { q: 'ou' },
      { q: 'soup OF' },
      { q: 'wOlK' },
      { q: '天气' },
      { q: '告诉我我要不要带伞' },
      { q: 'word/and-has-no-spaces?at=all' },
      { q: long.slice(3) },
      { q: `${long}x` },
      { q: 'i̇st' },
      { search: '0%', agent: 'agent5' },
      { q: 's', search: 'day' },
      { q: 'o' },
      { owner: 'u1' },
      { owner: 'u1', tenant: 't1' },
      { owner: 'u1', tenant: '' },
      { tenant: 't0' },
      { tenant: '' },
      { owner: '' },
      { owner: '', tenant: 't0' },
      { owner: 'none' },
      { owner: 'u2', tenant: 't0', agent: 'agent3' },
      { owner: 'u2', tenant: 't0', status: ['completed', 'running'] },
      { tenant: 't1', threadId: 'thread11' },
      { tenant: 't1', q: 'so', since: noon + 100 },
      { owner: 'u3', idPrefix: 'run_1' },
    ]
    for (const query of queries) {
      const expected = listRows(all, { ...query, limit: 1000 }).map(({ id }) => id)
      for (const limit of [17, 1000]) {
        const found: RunRow[] = []
        for (;;) {
          const page = await store.runs.list({ ...query, limit, ...(found.length > 0 && { before: found.at(-1)!.id }) })
          found.push(...page)
          if (page.length < limit) break
        }
        expect(
          found.map(({ id }) => id),
          JSON.stringify({ ...query, limit }),
        ).toEqual(expected)
      }
    }
    await store.close()
  })

  test('a run whose row is damaged is still its owner’s; a damaged set of a tenant is refused by name', async () => {
    const prefix = freshPrefix()
    const url = `${redis().url}?prefix=${prefix}`
    const store = await redisStore(url)
    const user = { id: 'ann', tenant: 'acme' }
    await store.log.append('r', 1, [startEntry('r', { user })])
    const tag = `{${prefix}:${partitionOf('r')}}`
    await redis().command('HSET', `${tag}:run:r`, 'row', '{oops')
    const other = await redisStore(url)
    const found = await other.runs.list({ owner: 'ann', tenant: 'acme' })
    expect(found).toMatchObject([{ id: 'r', owner: 'ann', tenant: 'acme', error: { code: 'unreadable-row' } }])
    expect(await other.runs.list({ owner: '' })).toEqual([])
    await redis().command('SET', `${tag}:tenant:globe`, 'x')
    const sibling = Array.from({ length: 1000 }, (_, i) => `s${i}`).find((id) => partitionOf(id) === partitionOf('r'))!
    const append = other.log.append(sibling, 1, [startEntry(sibling, { user: { id: 'bob', tenant: 'globe' } })])
    await expect(append).rejects.toMatchObject({
      code: 'store-damaged',
      message: expect.stringContaining('tenant:globe'),
    })
    expect(await other.runs.get(sibling)).toBeUndefined()
    await store.close()
    await other.close()
  })

  test('of runs that are dropped nothing is left but what others share', async () => {
    const prefix = freshPrefix()
    const store = await redisStore(`${redis().url}?prefix=${prefix}`)
    const start = (i: number, content: string) =>
      startEntry(`r${i}`, { input: { messages: [{ role: 'user', content }] }, ...userOf(i) }, noon)
    for (const [i, title] of titles.entries()) await store.log.append(`r${i}`, 1, [start(i, title), endEntry(2)])
    for (const i of titles.keys()) expect(await store.upkeep!.drop(`r${i}`)).toBe(true)
    expect(await store.runs.list()).toEqual([])
    const left = (await redis().command('KEYS', `{${prefix}:*`)).match(/\{\S+/gu) ?? []
    const lists = left.filter((key) =>
      /:(runs|ids|due|words|word:.*|agent:.*|thread:.*|user:.*|user-of:.*|tenant:.*|status:.*|run:.*|log:.*)$/u.test(
        key,
      ),
    )
    expect(lists).toEqual([])
    await store.close()
  })
})

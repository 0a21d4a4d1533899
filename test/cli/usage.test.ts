/** `millrace usage` and `millrace audit`: from a folder, and from a server's routes. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { auditRow } from '../../src/store/contract/ledger.contract.ts'
import { getAudit, recordAudit } from '../../src/server/routes/audit.ts'
import { getUsage } from '../../src/server/routes/usage.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/part/log.ts'
import { folder, ran } from '../support/cli.ts'
import { agent as yaml, createEngine } from '../support/engine.ts'

const users = [
  { id: 'u1', tenant: 'acme' },
  { id: 'u1', tenant: 'acme' },
  { id: 'u2', tenant: 'acme' },
  { id: 'key:ci', key: 'ci' },
  undefined,
]

/** A run of each. */
async function record(data: string): Promise<void> {
  mkdirSync(data, { recursive: true })
  const script = users.map(() => [text('Done'), finish()])
  const engine = createEngine({
    dir: data,
    keep: true,
    agents: { a: yaml(), b: yaml().replace('script:m', 'script:unpriced') },
    scripts: { m: createScriptedModel(script), unpriced: createScriptedModel(script) },
    pricing: { 'script:m': { input: 1e4, output: 1e4 } },
  })
  const input = { messages: [{ role: 'user', content: 'Hi' }] }
  for (const user of users) {
    const run = await engine.runtime.start(user?.id === 'u2' ? 'b' : 'a', input, user && { user })
    await run.result
  }
  await engine.close()
}

const since = ['--since', '2000-01-01', '--until', '2100-01-01']
const time = '2000-01-01 00:00:00 to 2100-01-01 00:00:00 UTC\n\n'

describe('millrace usage', () => {
  test('counts by user, tenant, key and agent in a data folder; mistakes are told', async () => {
    const cwd = folder({})
    await record(join(cwd, '.millrace'))
    const usage = async (...args: string[]) => {
      const { code, out, err } = await ran(['usage', ...since, ...args], { cwd })
      expect([code, err]).toEqual([0, ''])
      return out
    }
    expect(await usage()).toBe(`${time}USER      TENANT  RUNS  IN  OUT  TOKENS  COST
u1        acme    2     20  10   30      $0.3000
(no one)          1     10  5    15      $0.1500
key:ci            1     10  5    15      $0.1500
u2        acme    1     10  5    15      unknown
`)
    expect(await usage('--by', 'tenant')).toBe(`${time}TENANT       RUNS  IN  OUT  TOKENS  COST
acme         3     30  15   45      $0.3000 + unknown
(no tenant)  2     20  10   30      $0.3000
`)
    expect(await usage('--by', 'key')).toBe(`${time}KEY  RUNS  IN  OUT  TOKENS  COST
ci   1     10  5    15      $0.1500
`)
    expect(await usage('--by', 'agent')).toMatch(/^a +4 +40 +20 +60 +\$0\.6000\nb +1 /mu)
    expect(JSON.parse(await usage('--json'))).toMatchObject({
      by: 'user',
      rows: [{ name: 'u1', tenant: 'acme', runs: 2 }, {}, {}, {}],
    })
    const late = await ran(['usage', '--since', '2099-01-01', '--until', '2100-01-01'], { cwd })
    expect(late.out).toMatch(/\nnothing was used\n$/u)
    const wrong = await ran(['usage', '--by', 'tenent'], { cwd })
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('Did you mean tenant?')])
  })
})

describe('GET /api/usage', () => {
  const url = (query: string) => new URL(`http://localhost/api/usage?since=2000-01-01&until=2100-01-01&${query}`)

  test.each(['with tables', 'without'])('shows each caller what it may see, %s, and its quotas', async (how) => {
    const cwd = folder({})
    await record(join(cwd, '.millrace'))
    const opened = sqliteStore(join(cwd, '.millrace', 'millrace.db'))
    const { records, ...others } = opened
    const store: Store = how === 'without' ? others : { ...others, records: records! }
    try {
      const read = async (visible: object, query = 'by=user') => {
        const response = await getUsage({ store, visible }, url(query))
        return ((await response.json()) as { rows: { name: string; runs: number; totalTokens: number }[] }).rows
      }
      const names = async (...args: Parameters<typeof read>) => (await read(...args)).map(({ name }) => name)
      expect(await names({})).toEqual(['u1', '', 'key:ci', 'u2'])
      expect(await names({ tenant: 'acme' })).toEqual(['u1', 'u2'])
      expect(await names({ tenant: '' })).toEqual(['', 'key:ci'])
      expect(await read({ tenant: 'acme', owner: 'u1' })).toMatchObject([{ name: 'u1', runs: 2, totalTokens: 30 }])
      expect(await names({ tenant: 'other', owner: 'u1' })).toEqual([])
      expect(await names({}, 'by=key')).toEqual(['ci'])
      const quotas = [{ which: 'perUser.tokensPerDay', limit: 5, used: 1, resetsAt: 3 }]
      const said = await getUsage({ store, visible: {}, quotas: async () => quotas }, url('by=agent'))
      expect(await said.json()).toMatchObject({ by: 'agent', quotas })
      await expect(getUsage({ store, visible: {} }, url('by=users'))).rejects.toThrow(
        'by must be one of user, tenant, key, agent (did you mean "user"?).',
      )
      await expect(getUsage({ store, visible: {} }, url('sinec=1'))).rejects.toThrow('did you mean "since"')
    } finally {
      await opened.close()
    }
  })
})

describe('audit', () => {
  test('millrace audit lists a folder, filtered; nothing there says so', async () => {
    const cwd = folder({})
    await record(join(cwd, '.millrace'))
    const none = await ran(['audit'], { cwd })
    expect([none.code, none.out, none.err]).toEqual([0, '', 'no matching rows\n'])
    const store = sqliteStore(join(cwd, '.millrace', 'millrace.db'))
    const at = Date.UTC(2026, 0, 2, 3, 4, 5)
    await store.audit!.add(auditRow({ time: at }))
    await store.audit!.add(auditRow({ time: at, principal: '', tenant: '', action: 'runs.read', outcome: 'refused' }))
    await store.close()
    const { code, out } = await ran(['audit'], { cwd })
    expect([code, out]).toEqual([
      0,
      `TIME                 WHO       TENANT  ACTION     RESOURCE  OUTCOME  ADDRESS
2026-01-02 03:04:05  (no one)          runs.read  run_1     refused  127.0.0.1
2026-01-02 03:04:05  u1        acme    runs.stop  run_1     done     127.0.0.1
`,
    ])
    const stopped = await ran(['audit', '--user', 'u1', '--action', 'runs.stop', '--outcome', 'done', '--json'], {
      cwd,
    })
    expect(JSON.parse(stopped.out)).toMatchObject([{ principal: 'u1', tenant: 'acme', n: expect.any(Number) }])
    expect((await ran(['audit', '--limit', '0'], { cwd })).code).toBe(2)
    const asked = await ran(['query', 'SELECT action, outcome FROM audit ORDER BY n', '--json'], { cwd })
    expect(JSON.parse(asked.out)).toEqual([
      { action: 'runs.stop', outcome: 'done' },
      { action: 'runs.read', outcome: 'refused' },
    ])
  })

  test('GET /api/audit shows an operator its tenant, in pages', async () => {
    const store = memoryStore()
    const errors: unknown[] = []
    for (let i = 0; i < 5; i++) {
      const principal = { id: `u${i}`, tenant: i < 4 ? 'acme' : 'other' }
      recordAudit(
        { store, onError: (error) => errors.push(error) },
        { principal, action: 'runs.stop', resource: `run_${i}`, outcome: 'done', address: '10.0.0.1' },
      )
    }
    recordAudit({ store }, { action: 'runs.read', outcome: 'refused' })
    const read = async (query: string, visible: object = { tenant: 'acme' }) => {
      const response = await getAudit(store, visible, new URL(`http://localhost/api/audit?${query}`))
      return (await response.json()) as { rows: { n: number; resource: string; principal: string }[]; next?: number }
    }
    const first = await read('limit=3')
    expect(first.rows.map(({ resource }) => resource)).toEqual(['run_3', 'run_2', 'run_1'])
    const last = await read(`limit=3&before=${first.next}`)
    expect([last.rows.map(({ resource }) => resource), last.next]).toEqual([['run_0'], undefined])
    expect((await read('user=u2')).rows.map(({ resource }) => resource)).toEqual(['run_2'])
    expect((await read('user=u4')).rows).toEqual([])
    expect((await read('', {})).rows).toHaveLength(6)
    expect((await read('outcome=refused', { tenant: '' })).rows).toMatchObject([{ principal: '', resource: '' }])
    await expect(read('outcome=all')).rejects.toThrow('outcome must be one of done, refused.')
    await expect(read('befor=1')).rejects.toThrow('did you mean "before"')
    expect(errors).toEqual([])
  })

  test('a store that fails, hangs or has no audit delays and fails nothing, and is reported', async () => {
    const errors: unknown[] = []
    const failing = { audit: { ...memoryStore().audit!, add: () => Promise.reject(new Error('disk full')) } }
    const onError = (error: unknown) => void errors.push(error)
    recordAudit({ store: failing, onError }, { action: 'a', outcome: 'done' })
    await expect.poll(() => errors.length).toBe(1)
    recordAudit({ store: {}, onError }, { action: 'a', outcome: 'done' })
    let asked = 0
    const hanging = { audit: { ...memoryStore().audit!, add: () => (asked++, new Promise<void>(() => undefined)) } }
    for (let i = 0; i < 2000; i++) recordAudit({ store: hanging, onError }, { action: 'a', outcome: 'done' })
    expect([asked, errors.length]).toEqual([1000, 1])
  })
})

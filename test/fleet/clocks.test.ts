/** Instances whose clocks are an hour wrong: runs go by the clock of the store. Whole processes, so that no clock is forgotten. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Store } from '../../src/part/log.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { only } from '../support/engine.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { spawnServer, spawnServerIn, type ServerProcess } from '../support/server-process.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { endedRun, entryOf } from './fleet.ts'

const hour = 3_600_000
/** What is nearer than this is the same time; a clock that is an hour wrong is not. */
const near = hour / 4
const requestDeadlineMs = 3000
const says = 'workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]'
const asks =
  'workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, tools: [{ name: calculator, approval: true }] } }]'

/** A process whose clock is wrong from its first moment. */
const shifted = (ms: number) => {
  const code = `const Right = Date
globalThis.Date = class extends Right {
  constructor(...of) { if (of.length === 0) super(Right.now() + ${ms}); else super(...of) }
  static now() { return Right.now() + ${ms} }
}`
  return { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}

describeRedis('clocks', (redis) => {
  describe.each([
    ['ahead of', hour],
    ['behind', -hour],
  ] as const)('an instance an hour %s the store', (words, ahead) => {
    let root: string
    let upstream: Upstream
    let store: Store
    let wrong: ServerProcess
    let right: ServerProcess

    beforeAll(async () => {
      upstream = await startUpstream((reply) => {
        const text = JSON.stringify(reply.body)
        const buys = text.includes('Buy') && !text.includes('"role":"tool"')
        if (buys) reply.call('c1', 'calculator', { expression: '1' })
        else reply.say('Yes')
        reply.finish(buys ? 'tool_calls' : 'stop')
      })
      const settings = { requestDeadlineMs, models: { endpoints: [{ name: 'up', baseURL: upstream.baseURL }] } }
      root = mkdtempSync(join(tmpdir(), 'millrace-clocks-'))
      const files = {
        'says.yaml': says,
        'asks.yaml': asks,
        'millrace.config.mjs': `export default ${JSON.stringify(settings)}`,
      }
      for (const [name, content] of Object.entries(files)) writeFileSync(join(root, name), content)
      const url = `${redis().url}?prefix=${freshPrefix()}`
      store = await redisStore(url)
      ;[wrong, right] = await Promise.all([
        spawnServerIn(shifted(ahead), root, join(root, 'wrong'), '--store', url),
        spawnServer(root, join(root, 'right'), '--store', url),
      ])
    }, 30_000)
    afterAll(async () => {
      await Promise.all([wrong?.kill(), right?.kill(), store?.close(), upstream?.close()])
      rmSync(root, { recursive: true, force: true })
    })

    const post = async (url: string, body: object) => {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      expect(response.ok, await response.clone().text()).toBe(true)
      return response
    }
    const start = async ({ url }: ServerProcess, agentId: string, content: string) => {
      const input = { messages: [{ role: 'user', content }] }
      const { id } = (await (await post(`${url}/api/runs`, { agentId, input })).json()) as { id: string }
      return id
    }
    const ask = async ({ url }: ServerProcess, path: string) => (await fetch(url + path)).json() as Promise<any>

    test('writes the right times; filters, statistics and deletion go by them, wherever they are asked for', async () => {
      const began = Date.now()
      const runs = [await start(wrong, 'says', 'Hi'), await start(right, 'says', 'Hi')]
      for (const run of runs) {
        const entries = await endedRun(store, run)
        for (const { timestamp } of entries) expect(Math.abs(timestamp - began)).toBeLessThan(near)
      }
      for (const server of [wrong, right]) {
        const listed = await ask(server, `/api/runs?since=${began - near}`)
        expect(listed.runs.map(({ id }: { id: string }) => id)).toEqual(runs.toReversed())
        expect((await ask(server, `/api/runs?since=${began + near}`)).runs).toEqual([])
        expect((await ask(server, '/api/stats?window=1h')).outcomes).toEqual([{ name: 'completed', count: 2 }])
        const pruned = await (await post(`${server.url}/api/prune`, { olderThan: '30m' })).text()
        expect(pruned).toContain('"runs":0')
      }
    })

    test('says so once, and in /health', async () => {
      expect(wrong.stderr().match(/the clock of this machine is/gu)).toHaveLength(1)
      expect(wrong.stderr()).toContain(`s ${words} that of Redis`)
      expect(right.stderr()).not.toContain('the clock of this machine')
      const { fleet } = await ask(wrong, '/health')
      expect(Math.abs(fleet.clockAheadMs - ahead)).toBeLessThan(near)
      expect(Math.abs((await ask(right, '/health')).fleet.clockAheadMs)).toBeLessThan(2000)
    })

    test('a deadline that it has set comes in time, although it dies', { timeout: 60_000 }, async () => {
      const run = await start(wrong, 'asks', 'Buy')
      await entryOf(store, run, ({ type }) => type === 'suspend')
      await wrong.kill()
      const entries = await endedRun(store, run)
      const [[request], [response]] = [only(entries, 'request'), only(entries, 'response')]
      expect(response).toMatchObject({ outcome: 'closed', reason: 'deadline' })
      expect(request!.deadline - request!.timestamp).toBeGreaterThan(0)
      const late = response!.timestamp - request!.deadline
      expect([late >= -requestDeadlineMs / 2, late < near]).toEqual([true, true])
    })
  })
})

/** `GET /api/stats?window=`: slices of time, tools, and what is active now; the same from the tables and without them. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { WindowStats } from '../../src/part/window-stats.ts'
import { readWindow } from '../../src/record/window-stats.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { agent, createEngine, until } from '../support/engine.ts'

const messages = [{ role: 'user' as const, content: 'Hi' }]

describe('window of the statistics', () => {
  test.each(['tables', 'memory'])(
    'runs, failures, tokens, cost and first tokens by slice; tools; what runs and waits: %s',
    async (kind) => {
      const gate = latch()
      const engine = createEngine({
        agents: { a: agent('tools: [look, ask]'), b: agent().replace('script:m', 'script:x') },
        scripts: {
          m: createScriptedModel([
            [toolCall('c', 'look'), finish('tool-calls')],
            [text('Seen'), finish()],
            [toolCall('d', 'ask'), finish('tool-calls')],
            [text('So'), gate, finish()],
          ]),
          x: createScriptedModel([[throws(new Error('no'))]]),
        },
        tools: {
          look: { parameters: { type: 'object' }, execute: () => Promise.reject(new Error('blind')) },
          ask: { parameters: { type: 'object' } },
        },
        pricing: { 'script:m': { input: 1e6, output: 1e6 } },
        wrapStore: (store) => {
          if (kind === 'tables') return store
          void store.close()
          return { ...memoryStore(), durable: true }
        },
      })
      onTestFinished(() => engine.close())
      const { runtime, store } = engine
      const handler = createHandler({ runtime, authorize: () => true })
      const get = async (query: string) => {
        const response = await handler(new Request(`http://x/api/stats?${query}`))
        return (await response.json()) as WindowStats & {
          since: number
          outcomes: object[]
          error?: { message: string }
        }
      }
      await (
        await runtime.start('a', { messages })
      ).result
      await (
        await runtime.start('b', { messages })
      ).result
      await (
        await runtime.start('a', { messages })
      ).result
      const going = await runtime.start('a', { messages })
      await until(store, going.id, ({ type }) => type === 'text-delta')

      const hour = await get('window=1h')
      expect(hour).toMatchObject({ window: '1h', slice: 60_000, running: 1, waiting: 1, outcomes: expect.any(Array) })
      expect(hour.buckets).toHaveLength(60)
      expect(hour.buckets[1]!.at - hour.buckets[0]!.at).toBe(60_000)
      expect(hour.buckets[0]).toEqual({ at: hour.since, runs: 0, failed: 0, tokens: 0, cost: 0, firstToken: null })
      // The call that failed is estimated, and has no price. The test may stand on the border of two slices.
      const sum = (key: 'runs' | 'failed' | 'tokens' | 'cost') =>
        hour.buckets.slice(-2).reduce((n, each) => n + each[key], 0)
      expect([sum('runs'), sum('failed'), sum('tokens'), sum('cost')]).toEqual([4, 1, 53, 45])
      expect(hour.buckets.at(-1)!.firstToken).toMatchObject({ p50: expect.any(Number), p95: expect.any(Number) })
      const tools = Object.fromEntries(hour.tools.map((tool) => [tool.name, tool]))
      expect(tools['look']).toMatchObject({ calls: 1, errors: 1, p50: expect.any(Number), p95: expect.any(Number) })
      expect(tools['ask']).toMatchObject({ calls: 1, errors: 0 })

      const other = await get('window=24h&agent=b')
      expect(other).toMatchObject({ slice: 24 * 60_000, running: 0, waiting: 0, tools: [] })
      expect(other.buckets.reduce((n, { runs }) => n + runs, 0)).toBe(1)
      expect((await get('window=7d')).buckets).toHaveLength(60)
      expect((await get('window=2h')).error!.message).toBe('window must be one of 1h, 24h, 7d.')
      expect((await get('window=1h&since=0')).error!.message).toContain('alone')
      // A time of one's own, in slices of one's own.
      const range = `since=${hour.since}&until=${Date.now() + 60_000}`
      const own = await get(`${range}&slices=7`)
      expect(own).not.toHaveProperty('window')
      expect(own.buckets).toHaveLength(7)
      expect([own.buckets[0]!.at, own.running]).toEqual([hour.since, 1])
      expect(own.buckets.reduce((n, { runs }) => n + runs, 0)).toBe(4)
      const earlier = await get(`since=${hour.since - 3_600_000}&until=${hour.since}&slices=2`)
      expect([earlier.outcomes, earlier.buckets.length]).toEqual([[], 2])
      expect((await get('slices=0')).error!.message).toBe('slices must be a whole number from 1 to 120.')
      expect((await get('since=2&until=1&slices=3')).error!.message).toBe('since must be before until.')
      const none = await readWindow(store, { since: 0, until: 60_000 })
      expect(none.buckets.every(({ runs }) => runs === 0)).toBe(true)
      gate.open()
      await going.result
      expect(await get('window=1h')).toMatchObject({ running: 0, waiting: 1 })
    },
  )
})

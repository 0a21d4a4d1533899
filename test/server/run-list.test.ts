/** `GET /api/runs`: which runs are listed, and what a row tells of a run that goes on. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, latch, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { RunRow } from '../../src/part/log.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { agent, createEngine, until } from '../support/engine.ts'

const messages = [{ role: 'user' as const, content: 'Hi' }]

describe('list of runs', () => {
  test.each(['sqlite', 'memory'])(
    'by several states and by time; when its answer began and what failed: %s',
    async (kind) => {
      const gate = latch()
      const engine = createEngine({
        agents: { a: agent('tools: [look, ask]'), b: agent().replace('script:m', 'script:x') },
        scripts: {
          m: createScriptedModel([
            [toolCall('c', 'look'), finish('tool-calls')],
            [text('Seen'), gate, finish()],
            [toolCall('d', 'ask'), finish('tool-calls')],
          ]),
          x: createScriptedModel([[throws(new Error('no'))]]),
        },
        tools: {
          look: { parameters: { type: 'object' }, execute: () => Promise.reject(new Error('blind')) },
          ask: { parameters: { type: 'object' } },
        },
        wrapStore: (store) => {
          if (kind === 'sqlite') return store
          void store.close()
          return { ...memoryStore(), durable: true }
        },
      })
      onTestFinished(() => engine.close())
      const handler = createHandler({ runtime: engine.runtime, authorize: () => true })
      const list = async (query: string) => {
        const response = await handler(new Request(`http://x/api/runs?${query}`))
        const { runs, error } = (await response.json()) as { runs?: RunRow[]; error?: { message: string } }
        return runs ?? error!.message
      }
      const ids = async (query: string) => ((await list(query)) as RunRow[]).map(({ id }) => id)

      const going = await engine.runtime.start('a', { messages })
      await until(engine.store, going.id, ({ type }) => type === 'text-delta')
      const waiting = await engine.runtime.start('a', { messages })
      await waiting.result
      const failed = await engine.runtime.start('b', { messages })
      await failed.result
      expect(await ids('status=running,suspended')).toEqual([waiting.id, going.id])
      expect(await ids('status=running,failed')).toEqual([failed.id, going.id])
      expect(await ids(`since=${Date.now() + 60_000}`)).toEqual([])
      expect(await ids('since=2020-01-01T00:00:00Z')).toEqual([failed.id, waiting.id, going.id])
      expect(await list('status=running,wating')).toBe(
        'status must be one or several (with commas) of running, suspended, completed, failed, aborted, budget-exceeded, timed-out, interrupted.',
      )
      expect(await list('status=faild')).toContain('did you mean "failed"')
      expect(await list('since=soon')).toContain('since must be a time')
      expect(await ids('model=script:x')).toEqual([failed.id])
      expect(await ids(`protocol=library&until=${Date.now() + 1}`)).toEqual([failed.id, waiting.id, going.id])
      expect(await ids('protocol=ui')).toEqual([])
      expect(await ids('sort=started&order=asc&limit=2')).toEqual([going.id, waiting.id])
      expect(await ids(`sort=started&order=asc&before=${waiting.id}`)).toEqual([failed.id])
      expect(await ids('minCost=0.01')).toEqual([])
      expect(await ids('status=failed&maxMs=60000')).toEqual([failed.id])
      expect(await ids('status=failed&minMs=60000')).toEqual([])
      const counted = async (query: string) => (await handler(new Request(`http://x/api/runs?count=1&${query}`))).json()
      expect(await counted('limit=1')).toEqual({ count: 3, isMore: false })
      expect(await counted('status=failed')).toEqual({ count: 1, isMore: false })
      expect(await list('sort=price')).toBe('sort must be one of started, duration, cost, tokens.')
      expect(await list('order=asc')).toBe('order must be beside sort.')
      expect(await list('minCost=1e3')).toBe('minCost must be an amount of USD, such as 0.05.')
      expect(await list('maxMs=-1')).toContain('maxMs must be a whole number')
      expect(await list('until=later')).toContain('until must be a time')
      const row = async (id: string) => ((await list('')) as RunRow[]).find((each) => each.id === id)!
      expect(await row(going.id)).toMatchObject({ status: 'running', errors: 1, firstTokenMs: expect.any(Number) })
      expect(await row(waiting.id)).not.toHaveProperty('errors')
      expect(await row(failed.id)).toMatchObject({ status: 'failed', errors: 1 })
      expect(await row(failed.id)).not.toHaveProperty('firstTokenMs')
      gate.open()
      await going.result
      expect(await row(going.id)).toMatchObject({ status: 'completed', errors: 1, firstTokenMs: expect.any(Number) })
    },
  )
})

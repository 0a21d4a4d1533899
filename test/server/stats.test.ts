/** `GET /api/stats`: totals and percentiles over many runs. */
import { expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine } from '../support/engine.ts'

const messages = [{ role: 'user' as const, content: 'canary-7f3a' }]

test('outcomes, errors, usage with what has no price, and percentiles by model and tool', async () => {
  const good = [
    [toolCall('c', 'look', {}), finish('tool-calls')],
    [text('Done'), finish()],
  ]
  const engine = createEngine({
    agents: { a: agent('tools: [look]'), b: agent().replace('script:m', 'script:x') },
    scripts: {
      m: createScriptedModel([...good, ...good, [throws(new Error('busy'))]]),
      x: createScriptedModel([[text('Done'), finish()]]),
    },
    tools: { look: { parameters: { type: 'object' }, execute: () => 'canary-7f3a' } },
    pricing: { 'script:m': { input: 1e6, output: 1e6 } },
  })
  onTestFinished(() => engine.close())
  const handler = createHandler({ runtime: engine.runtime, authorize: () => true })
  const get = async (search = '') => {
    const response = await handler(new Request(`http://x/api/stats${search}`))
    const body = await response.text()
    expect(body).not.toContain('canary')
    const found = JSON.parse(body) as { usageByModel?: { name: string }[] }
    return { status: response.status, ...found }
  }
  for (const id of ['a', 'a', 'a', 'b']) await (await engine.runtime.start(id, { messages })).result
  const all = await get()
  expect(all).toMatchObject({
    status: 200,
    outcomes: [
      { name: 'completed', count: 3 },
      { name: 'failed', count: 1 },
    ],
    errors: [{ count: 1 }],
    agents: [
      { name: 'a', count: 3 },
      { name: 'b', count: 1 },
    ],
    duration: { count: 4, p50: expect.any(Number), p99: expect.any(Number) },
    toolCalls: [{ name: 'look', count: 2 }],
  })
  const models = Object.fromEntries(all.usageByModel!.map((row) => [row.name, row]))
  expect(models['script:x']).toMatchObject({ knownCost: 0, unpriced: 1, inputTokens: 10 })
  expect(models['script:m']).toMatchObject({ unpriced: 0 })
  expect(await get('?agent=b')).toMatchObject({ outcomes: [{ name: 'completed', count: 1 }], toolCalls: [] })
  expect(await get('?since=2000-01-01&until=2000-02-01')).toMatchObject({ outcomes: [], duration: null })
  expect(await get('?since=soon')).toMatchObject({
    status: 400,
    error: { message: expect.stringContaining('since must be') },
  })
})

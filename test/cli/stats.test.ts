/** `millrace stats`: the same from a server and from its database. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Stats } from '../../src/record/stats.ts'
import { folder, ran, serving } from '../support/cli.ts'
import { agent as yaml, createEngine } from '../support/engine.ts'

/** Two conversations: of `a`, whose model has a price, and of `b`, whose model has none. */
async function record(data: string): Promise<void> {
  mkdirSync(data)
  const script = [
    [toolCall('c', 'look', {}), finish('tool-calls')],
    [text('Done'), finish()],
  ]
  const engine = createEngine({
    dir: data,
    keep: true,
    agents: { a: yaml('tools: [look]'), b: yaml('tools: [look]').replace('script:m', 'script:unpriced') },
    scripts: { m: createScriptedModel([...script, ...script]), unpriced: createScriptedModel(script) },
    tools: { look: { parameters: { type: 'object' }, execute: () => 'seen' } },
    pricing: { 'script:m': { input: 1e4, output: 1e4 } },
  })
  for (const [id, threadId] of [
    ['a', 'zoo'],
    ['a', 'zoo'],
    ['b', 'moon'],
  ] as const) {
    await (
      await engine.runtime.start(id, { messages: [{ role: 'user', content: 'Hi' }] }, { threadId })
    ).result
  }
  await engine.close()
}

describe('millrace stats', () => {
  test('counts runs by model, agent, day, tool and thread; unknown cost is unknown; mistakes are told', async () => {
    const cwd = folder({ 'agents/a.yaml': yaml().replace('script:m', 'demo:assistant') })
    await record(join(cwd, '.millrace'))
    const server = await serving([], { cwd })
    const since = ['--since', '2000-01-01', '--until', '2100-01-01']
    const stats = (...args: string[]) => ran(['stats', ...since, ...args], { cwd })
    const look = async () => {
      const all = await Promise.all(['model', 'agent', 'tool', 'thread', 'day'].map((by) => stats('--by', by)))
      const json = await stats('--json', '--agent', 'a')
      for (const { code, err } of [...all, json]) expect([code, err]).toEqual([0, ''])
      return [...all, json].map(({ out }) => out)
    }
    const live = await look()
    const [model, agent, tool, thread, day, json] = live.map((out) => out.replaceAll(/\d+\.\d+s/gu, '0.00s'))
    expect(model).toBe(`2000-01-01 00:00:00 to 2100-01-01 00:00:00 UTC
runs      3: 3 completed
duration  0.00s, 0.00s, 0.00s (p50, p95, p99)

MODEL            CALLS  IN  CACHED  OUT  REASONING  COST
script:m         4      40          20              $0.6000
script:unpriced  2      20          10              unknown
total            6      60          30              $0.6000 + unknown

MODEL            CALLS  P50    P95    P99
script:m         4      0.00s  0.00s  0.00s
script:unpriced  2      0.00s  0.00s  0.00s
`)
    expect(agent).toMatch(/^AGENT .*\na +4 .*\$0\.6000\nb +2 .* unknown\ntotal /mu)
    expect(tool).toMatch(/^TOOL +CALLS +P50 +P95 +P99\nlook +3 /mu)
    expect(thread).toMatch(/^THREAD .*\nzoo +4 .*\$0\.6000\nmoon +2 .* unknown\ntotal /mu)
    expect(day).toMatch(/^DAY .*\n\d{4}-\d\d-\d\d +6 .*\$0\.6000 \+ unknown\n/mu)
    server.kill('SIGTERM')
    await server.exit
    expect(await look()).toEqual(live)
    expect(JSON.parse(json!) as Stats).toMatchObject({ agents: [{ name: 'a', count: 2 }] })

    const wrong = await ran(['stats', '--since', 'soon'], { cwd })
    expect([wrong.code, wrong.err]).toEqual([
      2,
      'millrace: --since must be a duration such as 7d or 12h, or a time such as 2026-01-31, not "soon".\n',
    ])
    expect((await ran(['stats', '--by', 'modell'], { cwd })).err).toContain('Did you mean model?')
    expect((await ran(['stats', '--since', '1d', '--until', '2d'], { cwd })).err).toContain('before --until')
  })
})

/** `GET /metrics`: what Prometheus reads. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createCounter } from '../../src/record/metrics/families.ts'
import { folder } from '../support/cli.ts'
import { agent, createEngine } from '../support/engine.ts'
import { serve } from '../../src/server/serve.ts'
import { parse } from './metrics-text.ts'

const messages = [{ role: 'user' as const, content: 'canary-7f3a' }]

describe('metrics', () => {
  test('runs, tokens, cost, model calls and tools are counted; counters grow; nothing that was said is in them', async () => {
    const script = [
      [toolCall('c', 'look', { q: 'canary-7f3a' }), finish('tool-calls')],
      [text('canary-7f3a'), finish()],
    ]
    const engine = createEngine({
      agents: { a: agent('tools: [look]') },
      scripts: { m: createScriptedModel([...script, ...script]) },
      tools: { look: { parameters: { type: 'object' }, execute: () => 'canary-7f3a' } },
      pricing: { 'script:m': { input: 1e6, output: 1e6 } },
    })
    onTestFinished(() => engine.close())
    const handler = createHandler({ runtime: engine.runtime, apiKey: 'the-key-of-the-server' })
    const get = (key?: string) =>
      handler(new Request('http://x/metrics', key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } }))
    expect((await get()).status).toBe(401)
    const read = async () => {
      const response = await get('the-key-of-the-server')
      expect(response.headers.get('content-type')).toContain('version=0.0.4')
      const body = await response.text()
      expect(body).not.toMatch(/canary|the-key/u)
      return parse(body)
    }
    const run = async () => (await engine.runtime.start('a', { messages })).result
    await read()
    for (const times of [1, 2]) {
      await run()
      const samples = await read()
      const expected = {
        'millrace_runs_started_total{agent="a"}': times,
        'millrace_runs_ended_total{agent="a",outcome="completed"}': times,
        'millrace_run_duration_seconds_count{agent="a"}': times,
        'millrace_runs{status="running"}': 0,
        'millrace_tokens_total{model="script:m",kind="input"}': 20 * times,
        'millrace_tokens_total{model="script:m",kind="output"}': 10 * times,
        'millrace_cost_usd_total{model="script:m"}': 30 * times,
        'millrace_model_call_duration_seconds_count{model="script:m"}': 2 * times,
        'millrace_model_call_duration_seconds_bucket{model="script:m",le="+Inf"}': 2 * times,
        'millrace_tool_calls_total{tool="look",outcome="completed"}': times,
      }
      for (const [name, value] of Object.entries(expected)) expect([name, samples.get(name)]).toEqual([name, value])
    }
  })

  test('a label has at most 100 values, and any text in it is escaped', () => {
    const counter = createCounter('x_total', 'Help.')
    for (let i = 0; i < 300; i++) counter.add({ model: `m${i}` })
    expect(parse(counter.text()).size).toBe(101)
    expect(parse(counter.text()).get('x_total{model="other"}')).toBe(200)
    const odd = createCounter('y_total', 'Help.')
    odd.add({ model: 'a"b\\c\nd' })
    expect(parse(odd.text()).get(String.raw`y_total{model="a\"b\\c\nd"}`)).toBe(1)
  })

  test('requests are counted by the pattern of their route, not by what stands in it', async () => {
    const engine = createEngine({
      agents: { a: agent() },
      scripts: { m: createScriptedModel([[text('Hi'), finish()]]) },
    })
    onTestFinished(() => engine.close())
    const handler = createHandler({ runtime: engine.runtime, authorize: () => true })
    const ask = (path: string, init?: RequestInit) => handler(new Request(`http://x${path}`, init))
    await ask('/api/runs/canary-7f3a')
    await ask('/api/runs/canary-7f3b')
    await ask('/canary-7f3a', { method: 'CANARY' })
    const headers = { 'content-type': 'application/json' }
    await (await ask('/api/chat', { method: 'POST', headers, body: JSON.stringify({ agentId: 'a', messages }) })).text()
    const body = await (await ask('/metrics')).text()
    expect(body).not.toMatch(/canary/iu)
    const samples = parse(body)
    expect(samples.get('millrace_http_requests_total{route="/api/runs/:id",method="GET",status="404"}')).toBe(2)
    expect(samples.get('millrace_http_requests_total{route="other",method="other",status="404"}')).toBe(1)
    expect(samples.get('millrace_http_requests_total{route="/api/chat",method="POST",status="200"}')).toBe(1)
    expect(samples.get('millrace_http_request_duration_seconds_count{route="/api/runs/:id"}')).toBe(2)
    // A stream lasts as long as its run.
    expect(samples.has('millrace_http_request_duration_seconds_count{route="/api/chat"}')).toBe(false)
  })

  test('a server tells its open streams, its event loop and the starts that it has refused', async () => {
    const dir = folder({
      'a.yaml': agent().replace('script:m', 'demo:assistant'),
      'millrace.config.mjs': 'export default { server: { rateLimit: { runsPerMinute: 1 } } }',
    })
    const server = await serve({ dir, data: 'none', port: 0, env: {}, log: () => undefined })
    onTestFinished(() => server.close())
    const read = async () => parse(await (await fetch(`${server.url}/metrics`)).text())
    const leave = new AbortController()
    await fetch(`${server.url}/api/events`, { signal: leave.signal })
    const first = await read()
    expect([first.get('millrace_active_streams'), first.get('millrace_rate_limited_total')]).toEqual([1, 0])
    expect(first.get('nodejs_eventloop_lag_max_seconds')).toBe(0)
    leave.abort()
    await vi.waitUntil(async () => (await read()).get('millrace_active_streams') === 0)
    const chat = { method: 'POST', headers: { 'content-type': 'application/json' } }
    const ask = () => fetch(`${server.url}/api/chat`, { ...chat, body: JSON.stringify({ agentId: 'a', messages }) })
    await (await ask()).text()
    expect((await ask()).status).toBe(429)
    expect((await read()).get('millrace_rate_limited_total')).toBe(1)
  })
})

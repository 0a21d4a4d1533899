/** Spans of runs at a collector, and the place in a trace that models, tools and programs are given. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { exportSpans } from '../../src/record/otlp/exporter.ts'
import { otlpSecrets, otlpSettingsOf } from '../../src/record/otlp/settings.ts'
import { openProject } from '../../src/project/project.ts'
import { installFakes } from '../support/cli/fakes.ts'
import { folder } from '../support/cli.ts'
import { startCollector, type Collector } from '../support/collector.ts'
import { agent, createEngine, entriesOf, only, type EngineOptions } from '../support/engine.ts'

const messages = [{ role: 'user' as const, content: 'Hi' }]
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`

function start({ url }: Collector, options: Partial<EngineOptions> = {}, settings: { content?: boolean } = {}) {
  const lines: string[] = []
  const engine = createEngine({
    agents: { a: agent('tools: [look]') },
    scripts: {
      m: createScriptedModel(
        Array.from({ length: 4 }, () => [
          [toolCall('c1', 'look', {}), finish('tool-calls')],
          [text('Hello'), finish()],
        ]).flat(),
      ),
    },
    tools: { look: { parameters: { type: 'object' }, execute: (_, context) => context.traceparent } },
    traces: true,
    ...options,
    wrapStore: (store) =>
      exportSpans(store, {
        settings: {
          url: `${url}/v1/traces`,
          headers: { 'x-key': 'k' },
          serviceName: 'mill',
          content: false,
          ...settings,
        },
        ...(options.dir && { file: join(options.dir, 'otlp.json') }),
        log: (line) => lines.push(line),
        delay: 5,
      }),
  })
  onTestFinished(() => engine.close())
  const run = async (given = {}) => {
    const started = await engine.runtime.start('a', { messages }, given)
    await started.result
    return started.id
  }
  return { ...engine, lines, run }
}

describe('traces', () => {
  test('a run that has ended is at the collector, in the trace of its caller; its tools were told their place', async () => {
    const collector = await startCollector()
    const { run, store, lines } = start(collector)
    const id = await run({ traceparent })
    await collector.received(1)
    const [request] = collector.requests
    expect([request!.path, request!.headers['x-key'], request!.headers['content-type']]).toEqual([
      '/v1/traces',
      'k',
      'application/json',
    ])
    const names = collector.spans.map(({ name }) => name).sort()
    expect(names).toEqual(['chat m', 'chat m', 'execute_tool look', 'invoke_agent a', 'llm answer'])
    expect(new Set(collector.spans.map((span) => span.traceId))).toEqual(new Set([traceId]))
    expect(collector.spans[0]!.service).toBe('mill')
    const tool = collector.spans.find(({ name }) => name === 'execute_tool look')!
    expect(only(await entriesOf(store, id), 'tool-result')[0]!.result).toBe(`00-${traceId}-${tool.spanId}-01`)
    expect(request!.body).not.toContain('Hello')
    expect(lines).toEqual([])
  })

  test('a collector that is busy gets it when it has asked to; it is told once, and no run waits', async () => {
    const busy = { status: 429, headers: { 'retry-after': '0' } }
    const collector = await startCollector(busy, busy, { status: 503 })
    const { run, lines } = start(collector)
    await run()
    await collector.received(4)
    const bodies = collector.requests.map(({ body }) => body)
    expect(new Set(bodies).size).toBe(1)
    expect(lines).toEqual([expect.stringMatching(/^traces cannot be sent to the collector: it answered HTTP 429\./u)])
  })

  test('one that refuses a batch is not asked again; what comes later is sent', async () => {
    const collector = await startCollector({ status: 400 })
    const { run, lines } = start(collector)
    await run()
    await collector.received(1)
    await run()
    await collector.received(2)
    expect(collector.requests[0]!.body).not.toBe(collector.requests[1]!.body)
    expect(lines).toEqual([expect.stringContaining('HTTP 400')])
  })

  test('what ended while no collector was there is sent after a restart', async () => {
    const dir = folder({})
    const [down, collector] = [await startCollector(...Array(50).fill({ status: 503 })), await startCollector()]
    const first = start(down, { dir, keep: true })
    const id = await first.run()
    await first.close()
    const kept = (JSON.parse(readFileSync(join(dir, 'otlp.json'), 'utf8')) as { position: number }).position
    expect(kept).toBeLessThan(await createEngine({ agents: {}, dir, keep: true }).store.log.position())
    const second = start(collector, { dir, keep: true })
    await collector.received(1)
    await second.close()
    const third = start(collector, { dir })
    await third.run()
    await third.close()
    const roots = collector.spans
      .filter(({ name }) => name === 'invoke_agent a')
      .map((span) => span.attributes['millrace.run.id'])
    expect(roots[0]).toBe(id)
    // A server that stops does not wait for an answer: the same spans may come again.
    expect(new Set(roots).size).toBe(2)
  }, 15_000)

  test('model servers, MCP servers and programs are given the place of the step that calls them', async () => {
    const seen: { url: string; traceparent: unknown; meta?: unknown }[] = []
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk) => (body += String(chunk)))
      request.on('end', () => {
        const { id, method, params } = JSON.parse(body || '{}') as {
          id?: number
          method?: string
          params?: { _meta?: { traceparent?: unknown } }
        }
        seen.push({
          url: method ?? request.url!,
          traceparent: request.headers.traceparent,
          meta: params?._meta?.traceparent,
        })
        if (request.url!.endsWith('/completions')) {
          const chunk = (choice: object) =>
            `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, ...choice }] })}\n\n`
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          return void response.end(
            `${chunk({ delta: { content: 'Hi' } })}${chunk({ finish_reason: 'stop' })}data: [DONE]\n\n`,
          )
        }
        if (id === undefined) return void response.writeHead(request.method === 'POST' ? 202 : 405).end()
        const result = {
          initialize: {
            protocolVersion: '2025-06-18',
            capabilities: { tools: {} },
            serverInfo: { name: 'x', version: '1' },
          },
          'tools/list': { tools: [{ name: 'ping', inputSchema: { type: 'object' } }] },
          'tools/call': { content: [{ type: 'text', text: 'pong' }] },
        }[method!]
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const fakes = installFakes()
    const collector = await startCollector()
    const a = `
workflow:
  - { id: answer, type: llm, config: { model: "box:m", messages: "$input.messages" } }
  - { id: ping, type: mcp-tool, config: { server: srv, tool: ping } }
`
    const { run, runtime } = start(collector, {
      agents: { a, c: fakes.agent({}) },
      models: { endpoints: [{ name: 'box', baseURL: url }] },
      mcpServers: { srv: { url } },
      environment: fakes.environment,
    })
    await run({ traceparent })
    await collector.received(1)
    await (
      await runtime.start('c', { messages }, { traceparent })
    ).result
    await collector.received(2)
    const place = (name: string) => `00-${traceId}-${collector.spans.find((span) => span.name === name)?.spanId}-01`
    expect(seen.find(({ url: at }) => at.endsWith('/completions'))?.traceparent).toBe(place('chat m'))
    const call = seen.find(({ url: at }) => at === 'tools/call')
    expect([call?.traceparent, call?.meta]).toEqual([place('mcp-tool ping'), place('mcp-tool ping')])
    expect(fakes.reports()[0]?.env['TRACEPARENT']).toBe(place('invoke_agent code'))
  })

  test('without export the caller’s place is handed on as it came, and none is made up', async () => {
    const calls: unknown[] = []
    const look = {
      parameters: { type: 'object' },
      execute: (_: unknown, context: { traceparent?: string }) => void calls.push(context.traceparent),
    }
    const collector = await startCollector()
    const { run } = start(collector, { traces: false, tools: { look } })
    await run({ traceparent })
    await run()
    expect(calls).toEqual([traceparent, undefined])
  })

  test('a project exports by the variables of OpenTelemetry; the key in its headers is recorded nowhere', async () => {
    const collector = await startCollector()
    const canary = 'canary-5f2d81'
    const dir = folder({ 'agents/a.yaml': 'workflow: [{ id: x, type: llm, config: { model: "demo:assistant" } }]' })
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: `x-api-key=${canary}`,
      OTEL_SERVICE_NAME: 'shop',
      MILLRACE_DEMO_DELAY_MS: '0',
    }
    const data = join(dir, 'data')
    const project = await openProject({ dir: join(dir, 'agents'), data, env })
    const asked = {
      messages: [{ role: 'user', content: `My key is ${canary}` }],
      user: canary,
      metadata: { user_id: 'ada' },
    }
    const run = await project.runtime.start('a', asked)
    await run.result
    expect(JSON.stringify(await entriesOf(project.runtime.store, run.id))).not.toContain(canary)
    await project.runtime.close(0)
    expect(collector.requests[0]!.headers['x-api-key']).toBe(canary)
    expect(collector.requests.map(({ body }) => body).join('')).not.toContain(canary)
    expect(collector.spans[0]!.service).toBe('shop')
    expect(new Set(collector.spans.map((span) => span.attributes['user.id']))).toEqual(new Set(['ada']))
  })

  test('what the settings come to', () => {
    const endpoint = 'http://c:4318/'
    expect(otlpSettingsOf(undefined, {})).toBeUndefined()
    expect(otlpSettingsOf({ endpoint }, { OTEL_SDK_DISABLED: 'true' })).toBeUndefined()
    expect(
      otlpSettingsOf({ endpoint, headers: { a: 'b c' } }, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://other' }),
    ).toEqual({
      url: 'http://c:4318/v1/traces',
      headers: { a: 'b c' },
      serviceName: 'millrace',
      content: false,
    })
    const env = {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://c/in',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x,y=z',
    }
    const settings = otlpSettingsOf(undefined, env)
    expect(settings).toMatchObject({ url: 'https://c/in', headers: { authorization: 'Bearer x', y: 'z' } })
    expect(otlpSecrets(settings)).toEqual(['Bearer x', 'x', 'z'])
    expect(() => otlpSettingsOf({ endpoint: 'c:4318' }, {})).toThrow(/is not an http or https URL/u)
  })

  test('a run that is deleted before its spans were sent does not keep those of others back', async () => {
    const held = Promise.withResolvers<void>()
    const collector = await startCollector({ status: 200, after: held.promise })
    const { run, store, lines } = start(collector)
    const first = await run()
    await collector.received(1)
    const gone = await run()
    // Until the exporter has noted that it has ended.
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    expect(await store.upkeep!.drop(gone)).toBe(true)
    const stays = await run()
    held.resolve()
    const roots = () => collector.spans.flatMap(({ attributes }) => attributes['millrace.run.id'] ?? [])
    await expect.poll(() => [...new Set(roots())]).toEqual([first, stays])
    expect(lines).toEqual([])
  })
})

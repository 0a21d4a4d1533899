/** The same through the packages that read providers and MCP servers for us: what they hand on, or break at, ends no run without its end. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startRecordedProvider, type Protocol } from '../../src/models/testing/recorded-provider.ts'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only } from '../support/engine.ts'

const messages = [{ role: 'user' as const, content: 'Hello' }]
const nested = (levels: number) => `${'{"a":['.repeat(levels / 2)}1${']}'.repeat(levels / 2)}`
const depths = [300, 3000, 20_000]

const chunks: [Protocol, (deep: string) => string[]][] = [
  [
    'google',
    (deep) => [
      `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"take","args":${deep}}}]},"finishReason":"STOP"}],"usageMetadata":${deep}}`,
    ],
  ],
  [
    'openai-chat',
    (deep) => [
      `{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi","extra":${deep}}}],"other":${deep}}`,
      `{"id":"1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"take","arguments":${JSON.stringify(deep)}}}]}}]}`,
      `{"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"deep":${deep}}}`,
    ],
  ],
  [
    'openai-responses',
    (deep) => [
      `{"type":"response.created","response":{"id":"r","created_at":1,"model":"m","deep":${deep}}}`,
      `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"take","arguments":""}}`,
      `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"take","arguments":${JSON.stringify(deep)},"status":"completed"}}`,
      `{"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":1,"deep":${deep}}}}`,
    ],
  ],
  [
    'anthropic',
    (deep) => [
      `{"type":"message_start","message":{"id":"1","model":"m","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1,"deep":${deep}}}}`,
      `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"take","input":${deep}}}`,
      `{"type":"content_block_stop","index":0}`,
      `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1,"deep":${deep}}}`,
      `{"type":"message_stop"}`,
    ],
  ],
]

describe('depth of outside data', () => {
  test.each(chunks.flatMap(([protocol, lines]) => depths.map((depth) => [protocol, depth, lines] as const)))(
    'what %s nests %d levels deep ends in a run that has its end',
    async (protocol, depth, lines) => {
      const upstream = await startRecordedProvider([{ protocol, lines: lines(nested(depth)) }])
      onTestFinished(() => upstream.close())
      const engine = createEngine({
        agents: { a: agent('tools: [take]\nmaxSteps: 2\nretries: 0').replace('script:m', 'x:m') },
        environment: { X_KEY: 'key-of-x' },
        models: { endpoints: [{ name: 'x', baseURL: upstream.baseURL, protocol, apiKeyEnv: 'X_KEY' }] },
        tools: { take: { parameters: {}, execute: () => 'taken' } },
      })
      onTestFinished(() => engine.close())
      const run = await engine.runtime.start('a', { messages })
      const { outcome } = await run.result
      expect(['completed', 'failed']).toContain(outcome)
      const entries = await entriesOf(engine.store, run.id)
      expect(entries.at(-1)).toMatchObject({ type: 'run-end', outcome })
      expect(entries.at(-1)).not.toMatchObject({ error: { code: 'store-failed' } })
    },
  )

  /** An MCP server whose answers are texts of any kind. */
  async function startMcp(tools: string, result: string): Promise<string> {
    const server = createServer((request, response) => {
      let body = ''
      request.setEncoding('utf8').on('data', (piece: string) => (body += piece))
      request.on('end', () => {
        if (request.method !== 'POST') return void response.writeHead(405).end()
        const { id, method } = JSON.parse(body) as { id?: number; method: string }
        if (id === undefined) return void response.writeHead(202).end()
        const hello =
          '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"stub","version":"1"}}'
        const answer = method === 'initialize' ? hello : method === 'tools/list' ? `{"tools":${tools}}` : result
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(`{"jsonrpc":"2.0","id":${id},"result":${answer}}`)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  test.each(depths)('what an MCP tool answers %d levels deep is told to the model within the bound', async (depth) => {
    const plain = '[{"name":"take","inputSchema":{"type":"object"}}]'
    const url = await startMcp(
      plain,
      `{"content":[],"structuredContent":{"deep":${nested(depth)}},"_meta":{"deep":${nested(depth)}}}`,
    )
    const model = createScriptedModel([
      [toolCall('c', 'far_take'), finish('tool-calls')],
      [text('Done.'), finish()],
    ])
    const engine = createEngine({
      agents: {
        a: agent('tools: [far_take]'),
        b: 'workflow: [{id: one, type: mcp-tool, result: one, config: {server: far, tool: take}}, {id: two, type: output-generator, config: {template: "$one"}}]',
      },
      scripts: { m: model },
      mcpServers: { far: { url } },
    })
    onTestFinished(() => engine.close())
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect(JSON.stringify(only(await entriesOf(engine.store, run.id), 'tool-result')[0]?.result).length).toBeLessThan(
      2000,
    )
    const step = await engine.runtime.start('b', { messages })
    expect(await step.result).toMatchObject({ outcome: 'completed' })
    await entriesOf(engine.store, step.id)
  })

  test.each(depths)('a tool of an MCP server whose schema is %d levels deep is refused by name', async (depth) => {
    let schema = '{"type":"object"'
    for (let i = 0; i < depth / 2; i++) schema += ',"properties":{"a":{"type":"object"'
    schema += '}'.repeat(2 * Math.ceil(depth / 2) + 1)
    const url = await startMcp(`[{"name":"take","inputSchema":${schema}}]`, '{"content":[]}')
    const engine = createEngine({
      agents: { a: agent('tools: [far_take]') },
      scripts: { m: createScriptedModel([[text('Hi'), finish()]]) },
      mcpServers: { far: { url } },
    })
    onTestFinished(() => engine.close())
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'failed', error: { message: expect.stringContaining('far') } })
    await entriesOf(engine.store, run.id)
  })
})

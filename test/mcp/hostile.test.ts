/** Whatever is sent to `/mcp`, the server answers with a response of JSON-RPC, and none says that it failed. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/scripted.ts'
import { createHandler } from '../../src/server/handler.ts'
import type { Handler } from '../../src/server/handler-context.ts'
import { agent, createEngine, type Engine } from '../support/engine.ts'
import { modernBody, modernHeaders } from '../support/mcp.ts'
import { often } from '../support/thorough.ts'

let engine: Engine
let handler: Handler
const failures: unknown[] = []

beforeAll(() => {
  const m = createScriptedModel(() => [text('x'), finish()])
  const input = 'input: { style?: string, deep?: object }\nmetadata: { mcp: { threads: true } }'
  engine = createEngine({ agents: { desk: agent('', input) }, scripts: { m } })
  const onError = (error: unknown) => void failures.push(error)
  handler = createHandler({ runtime: engine.runtime, authorize: () => true, onError, mcp: { taskAfter: 0 } })
})
afterAll(() => engine.close())

const methods = [
  'initialize',
  'server/discover',
  'ping',
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
  'subscriptions/listen',
  'notifications/cancelled',
  'notifications/initialized',
]
const names = ['desk', '__proto__', 'constructor', 'nosuch', '', 'desk.plan', 'run://x', 'mrtask_AAAA', 'thread://']
const anything = fc.jsonValue({ maxDepth: 3 })
const name = fc.oneof(fc.constantFrom(...names), anything)
const params = fc.record(
  {
    name,
    uri: name,
    taskId: name,
    requestId: anything,
    arguments: fc.oneof(
      fc.record({ message: anything, thread: anything, style: anything }, { requiredKeys: [] }),
      anything,
    ),
    inputResponses: anything,
    requestState: fc.oneof(fc.constant('mrstate_AAAA'), anything),
    cursor: anything,
    protocolVersion: fc.oneof(fc.constantFrom('2025-11-25', '2025-03-26'), anything),
    capabilities: anything,
    clientInfo: anything,
    notifications: fc.oneof(fc.record({ taskIds: anything, toolsListChanged: anything }), anything),
  },
  { requiredKeys: [] },
)
const capabilities = fc.oneof(
  fc.constant({ extensions: { 'io.modelcontextprotocol/tasks': {} }, elicitation: {} }),
  fc.record({ extensions: anything, elicitation: anything }, { requiredKeys: [] }),
)
const meta = fc.oneof(
  fc.constant({}),
  fc.record({ progressToken: anything, 'claudecode/toolUseId': anything, traceparent: anything }),
)
const header = fc.stringMatching(/^[!-~]{1,30}$/u)

/** Reads a response; of one that does not end, its beginning. */
async function read(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  if (reader === undefined) return ''
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}

async function send(body: unknown, headers: Record<string, string>): Promise<{ status: number; said: string }> {
  const init = { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await handler(new Request('http://localhost/mcp', init))
  return { status: response.status, said: await read(response) }
}

test('a modern request with any parameters is answered, and not with a 5xx', { timeout: 120_000 }, async () => {
  const request = fc.tuple(fc.constantFrom(...methods), params, capabilities, meta)
  await fc.assert(
    fc.asyncProperty(request, async ([method, given, can, more]) => {
      const body = modernBody(method, given, { capabilities: can, meta: more })
      const headers = Object.fromEntries(
        Object.entries(modernHeaders(body)).map(([key, value]) => [
          key,
          /^[ -~]*$/u.test(value) ? value : encoded(value),
        ]),
      )
      const { status, said } = await send(body, headers)
      expect(status, said).toBeLessThan(500)
      if (said !== '') expect(said).toContain('jsonrpc')
    }),
    { numRuns: often(2000) },
  )
  expect(failures).toEqual([])
})

function encoded(value: string): string {
  return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}?=`
}

test('any body with any headers is answered, and not with a 5xx', { timeout: 120_000 }, async () => {
  const message = fc.oneof(
    anything,
    fc.record(
      { jsonrpc: fc.constant('2.0'), id: anything, method: fc.constantFrom(...methods), params },
      { requiredKeys: ['jsonrpc'] },
    ),
  )
  const headers = fc.record(
    {
      'mcp-protocol-version': fc.oneof(fc.constantFrom('2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'), header),
      'mcp-method': fc.oneof(fc.constantFrom(...methods), header),
      'mcp-name': header,
      'mcp-session-id': header,
      'idempotency-key': header,
      accept: fc.oneof(fc.constantFrom('application/json', 'text/event-stream', '*/*'), header),
    },
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(fc.oneof(message, fc.array(message, { maxLength: 4 })), headers, async (body, more) => {
      const { status, said } = await send(body, { 'content-type': 'application/json', ...more })
      expect(status, said).toBeLessThan(500)
    }),
    { numRuns: often(2000) },
  )
  expect(failures).toEqual([])
})

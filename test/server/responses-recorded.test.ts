/** Requests that real clients have sent, recorded on 27 November 2026, with prompts and large schemas shortened: each is answered. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { finish, text } from '../../src/models/testing/scripted-model.ts'
import type { CallSettings } from '../../src/part/part.ts'
import { agent } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { recordedRequests } from '../support/recorded-requests.ts'
import { startServer, type TestServer } from '../support/server.ts'

interface Recorded {
  headers: Record<string, string>
  body: { stream?: boolean; input: unknown; tools?: { type: string; tools?: unknown[] }[]; [field: string]: unknown }
}

const { names, read } = recordedRequests<Recorded>('responses')

/** Answers with all that a schema asks for. */
const model = createTold(() => {
  const { responseFormat } = model.calls.at(-1)!
  const schema = responseFormat?.type === 'json' ? responseFormat.schema : undefined
  const fields = ((schema as { required?: string[] } | undefined)?.required ?? []).map((name) => [name, 'Hi'])
  return [text(schema === undefined ? 'Hi' : JSON.stringify(Object.fromEntries(fields))), finish()]
})
let server: TestServer
beforeAll(async () => {
  const any = agent().replace('workflow:', 'metadata: { aliases: ["*"] }\nworkflow:')
  server = await startServer({ agents: { a: any }, scripts: { m: model } })
})
afterAll(() => server.close())

describe.skipIf(names.length === 0)('recorded requests', () => {
  test('there are some', () => {
    expect(names.length).toBeGreaterThan(15)
  })

  test.each(names)('%s', async (name) => {
    const { headers, body } = read(name)
    const sent = Object.fromEntries(
      Object.entries(headers).filter(([key]) => /^(?:thread-id|session-id|x-)/u.test(key)),
    )
    const response = await server.post('/v1/responses', body, { headers: sent })
    const said = await response.text()
    if (body['previous_response_id'] !== undefined) {
      expect([response.status, said]).toEqual([400, expect.stringContaining('previous_response_not_found')])
      return
    }
    expect(response.status, said).toBe(200)
    expect(said).toContain(body.stream === true ? 'event: response.completed' : '"status":"completed"')
    const { tools = [], responseFormat } = model.calls.at(-1)!
    const functions = (body.tools ?? []).flatMap(({ type, tools: inner = [] }) =>
      type === 'function' ? [1] : type === 'namespace' ? inner : [],
    )
    expect(tools).toHaveLength(functions.length)
    const format = (body['text'] as { format?: { type: string } } | undefined)?.format
    expect(responseFormat?.type).toBe(format?.type === 'json_schema' ? 'json' : undefined)
    const [row] = await server.store.runs.list({ limit: 1 })
    for await (const [entry] of server.store.log.read(row!.id, { limit: 1 })) {
      if (entry?.type !== 'run-start') throw new Error('No start.')
      const { settings = {} as CallSettings, threadId } = entry
      expect(settings.toolChoice).toBe(body['tool_choice'])
      if (headers['thread-id'] !== undefined) expect(threadId).toBe(headers['thread-id'])
    }
  })
})

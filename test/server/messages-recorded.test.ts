/** Requests that real clients have sent, recorded on 27 November 2026, with prompts and large schemas shortened: each is answered. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { recordedRequests } from '../support/recorded-requests.ts'
import { startServer, type TestServer } from '../support/server.ts'

interface Recorded {
  method: string
  path: string
  headers: Record<string, string>
  body: {
    stream?: boolean
    messages: { role: string; content: unknown }[]
    tools?: { name: string; defer_loading?: boolean }[]
    output_config?: { format?: object; effort?: string }
    [field: string]: unknown
  } | null
}

const { names, read } = recordedRequests<Recorded>('messages')

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

const ask = async ({ path, body, headers }: Recorded) => {
  const sent = Object.fromEntries(Object.entries(headers).filter(([key]) => /^(?:anthropic-|x-claude)/u.test(key)))
  return body === null ? fetch(server.url + path, { headers: sent }) : server.post(path, body, { headers: sent })
}

describe.skipIf(names.length === 0)('recorded requests', () => {
  test('there are some', () => {
    expect(names.length).toBeGreaterThan(20)
  })

  test.each(names)('%s', async (name) => {
    const recorded = read(name)
    const { path, headers, body } = recorded
    const calls = model.calls.length
    const response = await ask(recorded)
    const said = await response.text()
    expect(response.status, said).toBe(200)
    if (body === null) {
      expect(JSON.parse(said)).toMatchObject({ data: [{ type: 'model', id: 'a', display_name: 'a' }], has_more: false })
      return
    }
    if (path.includes('count_tokens')) {
      expect(JSON.parse(said)).toEqual({ input_tokens: expect.any(Number) })
      expect(model.calls).toHaveLength(calls)
      return
    }
    expect(said).toContain(body.stream === true ? 'event: message_stop' : '"stop_reason":"end_turn"')
    const { tools = [], responseFormat, prompt } = model.calls.at(-1)!
    // Of those that are loaded later, only the one that a result names.
    const offered = (body.tools ?? []).filter(
      ({ defer_loading: later, name: tool }) => later !== true || tool === 'WebFetch',
    )
    expect(tools.map((tool) => tool.name)).toEqual(offered.map((tool) => tool.name))
    expect(responseFormat?.type).toBe(body.output_config?.format === undefined ? undefined : 'json')
    expect(JSON.stringify(prompt)).not.toContain('x-anthropic-billing-header')
    const [row] = await server.store.runs.list({ limit: 1 })
    for await (const [entry] of server.store.log.read(row!.id, { limit: 1 })) {
      if (entry?.type !== 'run-start') throw new Error('No start.')
      expect(entry.settings?.reasoning).toBe(body.output_config?.effort)
      expect(entry.settings?.maxOutputTokens).toBe(body['max_tokens'])
      expect(entry.input['ignored']).toBeUndefined()
      const session = headers['x-claude-code-session-id']
      if (session === undefined) continue
      const more = headers['x-claude-code-agent-id'] ?? (name === 'claude-tui-title' ? 'title' : undefined)
      expect(entry.threadId).toBe(more === undefined ? session : `${session}:${more}`)
    }
  })

  test('a system message stays where it is, behind the user’s', async () => {
    await ask(read('claude-print-tool-result'))
    expect(model.calls.at(-1)!.prompt.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'system',
      'assistant',
      'tool',
    ])
  })
})

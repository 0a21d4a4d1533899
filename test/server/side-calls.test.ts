/** `sideCalls`: another agent answers what coding CLIs ask beside a conversation, such as its title. The same at each door of `/v1`. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { finish, text } from '../../src/models/testing/scripted-model.ts'
import { callers, createTestAccess, headersFor } from '../support/callers.ts'
import { agent } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { recordedRequests } from '../support/recorded-requests.ts'
import { startServer } from '../support/server.ts'

const schema = { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] }
const parameters = { type: 'object', properties: {} }

interface Door {
  path: string
  /** A request without tools and format. */
  plain: object
  /** The field with a schema for the answer. */
  format: object
  /** JSON, but no schema. */
  loose: object
  tools: object
}

const doors: Record<string, Door> = {
  responses: {
    path: '/v1/responses',
    plain: { input: 'Fix the bug' },
    format: { text: { format: { type: 'json_schema', name: 'title', schema } } },
    loose: { text: { format: { type: 'json_object' } } },
    tools: { tools: [{ type: 'function', name: 'exec', parameters }] },
  },
  messages: {
    path: '/v1/messages',
    plain: { max_tokens: 1000, messages: [{ role: 'user', content: 'Fix the bug' }] },
    format: { output_config: { format: { type: 'json_schema', schema } } },
    loose: {},
    tools: { tools: [{ name: 'exec', input_schema: parameters }] },
  },
  chat: {
    path: '/v1/chat/completions',
    plain: { messages: [{ role: 'user', content: 'Fix the bug' }] },
    format: { response_format: { type: 'json_schema', json_schema: { name: 'title', schema } } },
    loose: { response_format: { type: 'json_object' } },
    tools: { tools: [{ type: 'function', function: { name: 'exec', parameters } }] },
  },
}

async function start(handler = {}, titles = agent()) {
  const says = () => createTold(() => [text('{"title":"A bug"}'), finish()])
  const [coder, small] = [says(), says()]
  const server = await startServer(
    {
      agents: {
        coder: agent('', 'sideCalls: titles'),
        titles: titles.replace('script:m', 'script:small'),
        plain: agent(),
      },
      scripts: { m: coder, small },
    },
    handler,
  )
  onTestFinished(() => server.close())
  const ask = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await server.post(path, { model: 'coder', ...body }, { headers })
    const json = (await response.json()) as { model: string; id: string }
    expect(response.status, JSON.stringify(json)).toBe(200)
    const run = await server.store.runs.get(response.headers.get('x-millrace-run-id')!)
    return { json, agent: run!.agent, threadId: run!.threadId }
  }
  return { server, ask, small }
}

describe.each(Object.entries(doors))('side calls at %s', (_, { path, plain, format, loose, tools }) => {
  test('a request without tools for JSON with a schema goes to the other agent, under the same model', async () => {
    const { ask, small } = await start()
    const title = await ask(path, { ...plain, ...format })
    expect([title.agent, title.json.model]).toEqual(['titles', 'coder'])
    expect(small.calls).toHaveLength(1)
    expect(small.calls[0]!.responseFormat).toMatchObject({ type: 'json', schema })
    // An empty list is none.
    expect((await ask(path, { ...plain, ...format, tools: [] })).agent).toBe('titles')
  })

  test('with tools, without a schema, or at an agent without it, nothing changes', async () => {
    const { ask, small } = await start()
    for (const body of [plain, { ...plain, ...tools }, { ...plain, ...format, ...tools }, { ...plain, ...loose }])
      expect((await ask(path, body)).agent, JSON.stringify(body)).toBe('coder')
    expect((await ask(path, { ...plain, ...format, model: 'plain' })).agent).toBe('plain')
    expect(small.calls).toHaveLength(0)
  })

  test('a caller that may not use the other agent gets the one that it has named', async () => {
    const { ask } = await start(
      { access: createTestAccess(), authorize: undefined },
      agent('', `access: { tenants: [${callers['alice of beta'].tenant ?? 'none'}] }`),
    )
    expect((await ask(path, { ...plain, ...format }, headersFor('alice'))).agent).toBe('coder')
    expect((await ask(path, { ...plain, ...format }, headersFor('alice of beta'))).agent).toBe('titles')
  })
})

const recorded = recordedRequests<{ headers: Record<string, string>; body: object }>('responses')

test.skipIf(recorded.names.length === 0)(
  'the title that Codex asks for beside a turn is a run of its own, in a thread of its own',
  async () => {
    const { ask } = await start()
    const sent = (name: string) => {
      const { headers, body } = recorded.read(name)
      const own = Object.entries(headers).filter(([key]) => /^(?:x-codex|thread-id|session-id)/u.test(key))
      return ask('/v1/responses', { ...body, model: 'coder', stream: false }, Object.fromEntries(own))
    }
    const turn = await sent('codex-tui-turn')
    const title = await sent('codex-tui-title')
    expect([turn.agent, title.agent]).toEqual(['coder', 'titles'])
    expect(title.threadId).not.toBe(turn.threadId)
    // Its summary of the conversation has no tools either, and is no side call.
    expect((await sent('codex-tui-compact')).agent).toBe('coder')
  },
)

test('a response that goes on from another one is no side call', async () => {
  const { ask } = await start()
  const { path, plain, format } = doors['responses']!
  const first = await ask(path, plain)
  const second = await ask(path, { ...plain, ...format, previous_response_id: first.json.id })
  expect([second.agent, second.threadId]).toEqual(['coder', first.threadId])
})

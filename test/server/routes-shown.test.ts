/**
 * Every route of the handler, and whom it shows what was recorded: a handler without `authorize` and without a key shows no conversation,
 * whatever is asked of it. A new route belongs into the table.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createScriptedModel, latch, text } from '../../src/models/scripted.ts'
import { assemble } from '../../src/server/handler.ts'
import type { Handler } from '../../src/server/handler-context.ts'
import { agent, createEngine, until, type Engine } from '../support/engine.ts'

const canary = 'canary-7f3a'
/** The thread of a run that has ended, and of one whose answer is being written; their runs. */
const ids = { ended: 'thread-ended', active: 'thread-active', run: '', running: '' }
const gate = latch()
let engine: Engine
let bare: Handler
let own: Handler
let routes: string[]

beforeAll(async () => {
  // It says the canary to those who know it, and nothing to others.
  const m = createScriptedModel(({ options }) => {
    const asked = JSON.stringify(options.prompt.at(-1))
    if (!asked.includes(canary)) return [text('Hello.')]
    return asked.includes('wait') ? [text(`I say ${canary}`), gate] : [text(`I say ${canary}`)]
  })
  engine = createEngine({ agents: { a: agent() }, scripts: { m } })
  const { runtime, store } = engine
  bare = assemble({ runtime }).handler
  const all = assemble({ runtime, authorize: () => true, edit: true })
  own = all.handler
  routes = all.routes.map(({ method, path }) => `${method} ${path}`).toSorted()
  const start = (content: string, threadId: string) =>
    runtime.start('a', { messages: [{ id: 'm1', role: 'user', content }] }, { threadId, protocol: 'ui' })
  const ended = await start(`Say ${canary}`, ids.ended)
  await ended.result
  const running = await start(`Say ${canary} and wait`, ids.active)
  await until(store, running.id, ({ type }) => type === 'text-delta')
  Object.assign(ids, { run: ended.id, running: running.id })
  await store.records?.settle()
})
afterAll(async () => {
  gate.open()
  await engine.close()
})

type Shows =
  /** What was recorded, to those whom the application allows. */
  | 'records'
  /** An effect, or facts of what was recorded, for them too. */
  | 'operates'
  /** An answer to what is asked, and nothing of what was said before. */
  | 'answers'
  /** Nothing recorded. */
  | 'facts'

interface Row {
  shows: Shows
  /** The path and the query of a request for the recorded runs. Default: that of the route. */
  ask?: () => string
  body?: () => object
}

const messages = (content = 'Hi') => [{ id: 'm9', role: 'user', content }]
const runInput = (threadId: string) => {
  return { threadId, runId: 'r9', messages: messages(), tools: [], context: [], state: null, forwardedProps: {} }
}
const chat: Row = { shows: 'answers', body: () => ({ agentId: 'a', id: ids.ended, messages: messages() }) }
const completion: Row = { shows: 'answers', body: () => ({ model: 'a', messages: messages() }) }
const prompt: Row = { shows: 'answers', body: () => ({ model: 'a', prompt: 'Hi' }) }
const mcpCall = () => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'a', arguments: { message: 'Hi' } },
})
const facts: Row = { shows: 'facts' }
const operates: Row = { shows: 'operates' }
const records = (ask: () => string): Row => ({ shows: 'records', ask })
const ofRun = (rest: string) => records(() => `/api/runs/${ids.run}${rest}`)

/** Of Anthropic's form. */
const asksHi = [{ role: 'user', content: 'Hi' }]

const table: Record<string, Row> = {
  'GET /': facts,
  'GET /health': facts,
  'GET /health/live': facts,
  'GET /auth/ways': facts,
  'GET /api/audit': operates,
  'GET /api/usage': operates,
  'GET /api/keys': operates,
  'POST /api/keys': operates,
  'DELETE /api/keys/:name': operates,
  'POST /api/keys/:name/rotate': operates,
  'GET /metrics': operates,
  'POST /v1/messages': { shows: 'answers', body: () => ({ model: 'a', max_tokens: 9, messages: asksHi }) },
  'POST /v1/messages/count_tokens': { shows: 'facts', body: () => ({ model: 'a', messages: asksHi }) },
  'GET /v1/models': facts,
  'GET /v1/models/:id': { shows: 'facts', ask: () => '/v1/models/a' },
  'GET /api/v1/models': facts,
  'GET /api/v1/models/:id': { shows: 'facts', ask: () => '/api/v1/models/a' },
  'POST /v1/chat/completions': completion,
  'POST /api/v1/chat/completions': completion,
  'POST /v1/responses': { shows: 'answers', body: () => ({ model: 'a', input: 'Hi' }) },
  'POST /v1/responses/input_tokens': { shows: 'facts', body: () => ({ model: 'a', input: 'Hi' }) },
  'POST /v1/responses/compact': operates,
  'GET /v1/responses/:id': records(() => `/v1/responses/resp_${ids.run}`),
  'GET /v1/responses/:id/input_items': records(() => `/v1/responses/resp_${ids.run}/input_items`),
  'POST /v1/responses/:id/cancel': operates,
  'DELETE /v1/responses/:id': operates,
  'POST /v1/completions': prompt,
  'POST /api/v1/completions': prompt,
  'POST /api/chat': chat,
  'POST /api/beddel/chat': chat,
  'GET /api/chat/:id/stream': records(() => `/api/chat/${ids.active}/stream`),
  'POST /ag-ui/:agentId': { shows: 'answers', ask: () => '/ag-ui/a', body: () => runInput(ids.ended) },
  'GET /ag-ui/:agentId/connect': records(() => `/ag-ui/a/connect?threadId=${ids.active}`),
  'GET /ag-ui/:agentId/capabilities': { shows: 'facts', ask: () => '/ag-ui/a/capabilities' },
  'POST /mcp': { shows: 'answers', body: mcpCall },
  'POST /mcp/:agent': { shows: 'answers', ask: () => '/mcp/a', body: mcpCall },
  'GET /api/agents': facts,
  'GET /api/agents/:id': { shows: 'facts', ask: () => '/api/agents/a' },
  'GET /api/agents/schema': { shows: 'facts' },
  'POST /api/agents/check': operates,
  'POST /api/agents/:id': operates,
  'GET /api/agents/:id/settings': { shows: 'facts', ask: () => '/api/agents/a/settings' },
  'POST /api/agents/:id/settings': operates,
  'POST /api/agents/:id/rename': operates,
  'DELETE /api/agents/:id': operates,
  'GET /api/server': operates,
  'GET /api/live': records(() => `/api/live?rows=1&runs=${ids.run}~0`),
  'GET /api/events': records(() => '/api/events?after=0&types=prompt'),
  'GET /api/stats': operates,
  'GET /api/search': records(() => `/api/search?q=${canary.slice(0, 6)}`),
  'GET /api/diff': records(() => `/api/diff?a=${ids.run}&b=${ids.running}`),
  'GET /api/threads': records(() => '/api/threads'),
  'GET /api/threads/:id': records(() => `/api/threads/${ids.ended}`),
  'GET /api/runs': operates,
  'GET /api/tests': operates,
  'POST /api/tests': operates,
  'POST /api/tests/run': operates,
  'POST /api/tests/stop': operates,
  'POST /api/tests/results': operates,
  'GET /api/tests/progress': operates,
  'GET /api/tests/draft': operates,
  'GET /api/tests/:id': operates,
  'POST /api/tests/:id/accept': operates,
  'POST /api/tests/:id/discard': operates,
  'POST /api/tests/:id/undo': operates,
  'POST /api/tests/:id/rename': operates,
  'DELETE /api/tests/:id': operates,
  'GET /api/feedback': operates,
  'GET /api/runs/:id/feedback': operates,
  'POST /api/runs/:id/feedback': operates,
  'DELETE /api/runs/:id/feedback': operates,
  'GET /api/runs/:id': ofRun(''),
  'GET /api/runs/:id/events': ofRun('/events'),
  'GET /api/runs/:id/replay': ofRun('/replay?speed=max'),
  'GET /api/runs/:id/export': ofRun('/export'),
  'GET /api/runs/:id/programs': operates,
  'GET /api/runs/:id/outline': operates,
  'GET /api/runs/:id/prompt': ofRun('/prompt?step=main/answer/1'),
  'GET /api/runs/:id/requests': operates,
  'POST /api/runs': operates,
  'POST /api/runs/import': operates,
  'POST /api/runs/:id/fork': operates,
  'POST /api/runs/:id/stop': operates,
  'POST /api/runs/:id/requests/:requestId': operates,
  'POST /api/runs/:id/messages': operates,
  'DELETE /api/runs/:id/messages/:messageId': operates,
  'POST /api/compact': operates,
  'POST /api/prune': operates,
  'DELETE /api/runs/:id': operates,
  'POST /api/threads/:id/title': operates,
  'DELETE /api/threads/:id': operates,
}

describe('list of routes', () => {
  test('the table has every route', () => {
    expect(Object.keys(table).toSorted()).toEqual(routes)
  })

  /** The status, and what the body says, read until it says the canary. */
  async function ask(handler: Handler, route: string, { ask: address, body }: Row) {
    const [method, pattern] = route.split(' ') as [string, string]
    const path = address?.() ?? pattern.replace(':id', ids.run).replace(':requestId', 'x')
    const headers = { 'content-type': 'application/json' }
    const init = { method, ...(method === 'POST' && { headers, body: JSON.stringify(body?.() ?? {}) }) }
    const response = await handler(new Request(`http://localhost${path}`, init))
    const reader = response.body?.getReader()
    let said = ''
    while (!said.includes(canary)) {
      const { done, value } = (await reader?.read()) ?? { done: true }
      if (done) break
      said += new TextDecoder().decode(value)
    }
    await reader?.cancel()
    return { status: response.status, said }
  }

  test.each(Object.entries(table))('%s', async (route, row) => {
    const { status, said } = await ask(bare, route, row)
    expect(said).not.toContain(canary)
    if (row.shows === 'answers' || (row.shows === 'facts' && !route.endsWith('/schema'))) expect(status).toBe(200)
    else expect([403, 404, 405]).toContain(status)
    if (row.shows !== 'records') return
    const allowed = await ask(own, route, row)
    expect([route, allowed.status]).toEqual([route, 200])
    expect(allowed.said).toContain(canary)
  })

  test('where a route refuses, the message has the cure', async () => {
    for (const path of [`/api/chat/${ids.active}/stream`, `/ag-ui/a/connect?threadId=${ids.ended}`]) {
      const response = await bare(new Request(`http://localhost${path}`))
      expect(response.status).toBe(403)
      expect(await response.json()).toMatchObject({
        error: { code: 'forbidden', message: expect.stringContaining('"authorize"') },
      })
    }
  })
})

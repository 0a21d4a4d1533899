/**
 * Who may do what, over every route: each is asked by everyone for a run of alice. The routes come from the router; one that is not in the table
 * fails. What is not a caller's is like what does not exist.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { finish, text, toolCall, createScriptedModel } from '../../src/models/scripted.ts'
import { openTestDesk, type TestDesk } from '../../src/regress/test-desk.ts'
import { assemble } from '../../src/server/handler.ts'
import type { ExecutionContext } from '../../src/engine/registry.ts'
import type { SignIns } from '../../src/tools/mcp/auth/sign-ins.ts'
import type { Handler } from '../../src/server/handler-context.ts'
import { agent, createEngine, until, type Engine } from '../support/engine.ts'
import { callers, createTestAccess, everyone, headersFor, type Caller } from '../support/callers.ts'
import { runUserOf } from '../../src/part/principal.ts'

const canary = 'canary-51aa'
let engine: Engine
let handler: Handler
/** A folder with one test case of agent `a`. */
const project = mkdtempSync(join(tmpdir(), 'millrace-matrix-'))
let desk: TestDesk
let routes: { method: string; path: string; action: string }[]

beforeAll(async () => {
  const m = createScriptedModel((call) => {
    const asked = JSON.stringify(call.options.prompt.at(-1))
    if (asked.includes('ask')) return [text('I ask. '), toolCall('wipe', { disk: canary }), finish('tool-calls')]
    return [text(asked.includes(canary) ? `I say ${canary}` : 'Hello.'), finish()]
  })
  const parameters = z.looseObject({ disk: z.string() })
  const wipe = { description: 'Wipes', parameters, approval: true, execute: () => canary }
  const yaml = agent('tools: [wipe]\nsystem: "secret prompt"')
  const steps = {
    connect: async (_: unknown, { request }: ExecutionContext) =>
      request({ reason: 'mcp-sign-in', metadata: { server: 'drive' } }),
  }
  const connects = 'workflow: [{ id: connect, type: connect, config: {} }]'
  engine = createEngine({ agents: { a: yaml, other: agent(), connects }, scripts: { m }, tools: { wipe }, steps })
  // Everybody has signed in already.
  const source = { token: async () => 'a token', renewed: async () => 'a token', given: [] }
  const signIns = { source: async () => source } as unknown as SignIns
  for (const name of ['agents', 'tests']) mkdirSync(join(project, name))
  writeFileSync(join(project, 'tests/x.yaml'), 'agent: a\ncases: [{ name: hi, message: Hi }]\n')
  desk = openTestDesk({ dir: join(project, 'agents'), env: {}, store: engine.store, onError: () => undefined })
  const assembled = assemble({
    runtime: { ...engine.runtime, signIns },
    access: createTestAccess(),
    edit: true,
    tests: async () => desk,
  })
  handler = assembled.handler
  routes = [...assembled.routes]
})
afterAll(async () => {
  await desk.close()
  await engine.close()
  rmSync(project, { recursive: true })
})

interface Ids {
  run: string
  thread: string
  request: string
}

let count = 0

/** A run of alice that has ended, or that waits for an approval. Its thread has a name of her own. */
async function runOf({ waits = false, agentId = 'a' } = {}): Promise<Ids> {
  const { runtime, store } = engine
  const threadId = `chat-${++count}`
  const run = await runtime.start(
    agentId,
    { messages: [{ id: 'm1', role: 'user', content: `${waits ? 'ask' : 'say'} ${canary}` }] },
    { threadId: `${threadId}@@acme/alice`, user: runUserOf(callers.alice)!, protocol: 'ui' },
  )
  if (waits) await until(store, run.id, ({ type }) => type === 'suspend')
  if (waits && agentId === 'a') await runtime.tell(run.id, { id: 'm1', content: 'Shorter' })
  else await run.result
  const request = waits ? await requestOf(run.id) : ''
  return { run: run.id, thread: threadId, request }
}

async function requestOf(run: string): Promise<string> {
  for await (const batch of engine.store.log.read(run)) {
    for (const entry of batch) if (entry.type === 'request') return entry.requestId
  }
  throw new Error('The run has asked nothing.')
}

/**
 * `yes`: it is done, for alice's run. `unknown`: as for an id that nobody has. `forbidden`: never for this role. `own`: it is done with what is the
 * caller's, which shows nothing of alice's. `refused`: a caller without a name cannot go on with a thread that has an owner. `no agent`: it sees the run, and may not use its agent.
 */
type Expected = 'yes' | 'unknown' | 'forbidden' | 'own' | 'refused' | 'no agent'
type Row = Partial<Record<keyof typeof callers, Expected>>

/** Runs of alice, for who sees them. */
const reads: Row = {
  alice: 'yes',
  bob: 'unknown',
  'alice of beta': 'unknown',
  operator: 'yes',
  'operator of beta': 'unknown',
  'admin of acme': 'yes',
  admin: 'yes',
  'other agents': 'yes',
}
const lists: Row = { ...reads, bob: 'own', 'alice of beta': 'own', 'operator of beta': 'own' }
const starts: Row = {
  ...lists,
  alice: 'own',
  operator: 'own',
  'admin of acme': 'own',
  admin: 'own',
  'other agents': 'unknown',
}
/** Such a start names a thread of alice. */
const startsThere: Row = { ...starts, admin: 'refused' }
const renames: Row = { ...reads, operator: 'forbidden', 'other agents': 'forbidden' }
const deletes: Row = { ...reads, operator: 'forbidden', 'other agents': 'forbidden' }
const forEveryone: Row = Object.fromEntries(Object.keys(callers).map((name) => [name, 'own']))
const texts: Row = { ...forEveryone, alice: 'forbidden', bob: 'forbidden', 'alice of beta': 'forbidden' }
const admins: Row = Object.fromEntries(
  // What all tenants share.
  Object.keys(callers).map((name) => [name, name === 'admin' ? 'own' : 'forbidden']),
)
const imports: Row = texts
/** An admin of a tenant has the keys of its tenant. */
const keys: Row = { ...admins, 'admin of acme': 'own' }
const noKey: Row = { ...keys, 'admin of acme': 'unknown', admin: 'unknown' }
const forks: Row = { ...reads, 'other agents': 'no agent' }

interface Ask {
  row: Row
  /** Which run of alice it needs. Default: one for all, that has ended. */
  needs?: 'waiting' | 'ended' | 'sign-in'
  path?: (ids: Ids) => string
  body?: (ids: Ids) => unknown
  /** What it answers has no ids of runs, so an unknown one is told by the words alone. */
  headers?: Record<string, string>
  /** The page does not exist without its files. */
  unasked?: true
}

const messages = [{ id: 'm9', role: 'user', content: 'Hi' }]
const runInput = (threadId: string) => {
  return { threadId, runId: 'r9', messages, tools: [], context: [], state: null, forwardedProps: {} }
}
const ofRun = (rest = '', row = reads): Ask => ({ row, path: ({ run }) => `/api/runs/${run}${rest}` })
const ofResponse = (rest = '', row = reads): Ask => ({ row, path: ({ run }) => `/v1/responses/resp_${run}${rest}` })
const nowhere: Row = Object.fromEntries(Object.keys(callers).map((name) => [name, 'unknown']))
const at = (path: string, row: Row): Ask => ({ row, path: () => path })
/** Only whoever has started the run. */
const connects: Ask = {
  row: { ...nowhere, alice: 'yes' },
  needs: 'sign-in',
  path: ({ request }) => `/mcp/connect/${request}`,
}
const ofTest = (how: string): Ask => at(`/api/tests/x%2Fnosuch/${how}`, { ...admins, admin: 'unknown' })
const open: Ask = { row: forEveryone, unasked: true }

/** Of Anthropic's form. */
const asksHi = [{ role: 'user', content: 'Hi' }]

const table: Record<string, Ask> = {
  'GET /': open,
  'GET /health': open,
  'GET /health/live': open,
  'GET /auth/ways': open,
  'GET /metrics': at('/metrics', admins),
  'GET /api/agents': at('/api/agents', forEveryone),
  'GET /api/agents/schema': at('/api/agents/schema', texts),
  'POST /api/agents/check': { row: admins, body: () => ({ id: 'a', text: agent() }) },
  // A program's agents are in its code.
  'POST /api/agents/:id': {
    row: { ...admins, admin: 'forbidden', 'admin of acme': 'forbidden' },
    path: () => '/api/agents/a',
    body: () => ({ text: agent() }),
  },
  'GET /api/agents/:id/settings': {
    row: { ...forEveryone, 'other agents': 'unknown' },
    path: () => '/api/agents/a/settings',
  },
  'POST /api/agents/:id/settings': {
    row: admins,
    path: () => '/api/agents/a/settings',
    body: () => ({ changes: [] }),
  },
  'POST /api/agents/:id/rename': {
    row: { ...admins, admin: 'forbidden', 'admin of acme': 'forbidden' },
    path: () => '/api/agents/a/rename',
    body: () => ({ to: 'b', etag: 'x' }),
  },
  'DELETE /api/agents/:id': {
    row: { ...admins, admin: 'forbidden', 'admin of acme': 'forbidden' },
    path: () => '/api/agents/a?etag=x',
  },
  'GET /api/agents/:id': { row: { ...forEveryone, 'other agents': 'unknown' }, path: () => '/api/agents/a' },
  'POST /api/chat': { row: startsThere, body: ({ thread }) => ({ agentId: 'a', id: thread, messages }) },
  'POST /api/beddel/chat': { row: startsThere, body: ({ thread }) => ({ agentId: 'a', id: thread, messages }) },
  'GET /api/chat/:id/stream': {
    row: forEveryone,
    path: ({ thread }) => `/api/chat/${encodeURIComponent(thread)}/stream`,
  },
  'POST /v1/chat/completions': { row: starts, body: () => ({ model: 'a', messages }) },
  'POST /v1/completions': { row: starts, body: () => ({ model: 'a', prompt: 'Hi' }) },
  'POST /v1/responses': { row: starts, body: () => ({ model: 'a', input: 'Hi' }) },
  'POST /v1/responses/input_tokens': {
    row: { ...forEveryone, 'other agents': 'unknown' },
    body: () => ({ model: 'a', input: 'Hi' }),
  },
  // It is not there, for anybody.
  'POST /v1/responses/compact': { row: nowhere, body: () => ({ model: 'a', input: 'Hi' }) },
  'GET /v1/responses/:id': ofResponse(),
  'GET /v1/responses/:id/input_items': ofResponse('/input_items'),
  'POST /v1/responses/:id/cancel': { ...ofResponse('/cancel'), needs: 'waiting' },
  'DELETE /v1/responses/:id': { ...ofResponse('', deletes), needs: 'ended' },
  'POST /v1/messages': { row: starts, body: () => ({ model: 'a', max_tokens: 9, messages: asksHi }) },
  'POST /v1/messages/count_tokens': {
    row: { ...forEveryone, 'other agents': 'unknown' },
    body: () => ({ model: 'a', messages: asksHi }),
  },
  'GET /v1/models': at('/v1/models', forEveryone),
  'GET /v1/models/:id': { row: { ...forEveryone, 'other agents': 'unknown' }, path: () => '/v1/models/a' },
  'POST /api/v1/chat/completions': { row: starts, body: () => ({ model: 'a', messages }) },
  'POST /api/v1/completions': { row: starts, body: () => ({ model: 'a', prompt: 'Hi' }) },
  'GET /api/v1/models': at('/api/v1/models', forEveryone),
  'GET /api/v1/models/:id': { row: { ...forEveryone, 'other agents': 'unknown' }, path: () => '/api/v1/models/a' },
  'POST /ag-ui/:agentId': { row: startsThere, path: () => '/ag-ui/a', body: ({ thread }) => runInput(thread) },
  'GET /ag-ui/:agentId/connect': {
    // Operators name threads as the log does.
    row: { ...reads, 'other agents': 'unknown' },
    path: ({ thread }) => `/ag-ui/a/connect?threadId=${encodeURIComponent(thread)}`,
  },
  'GET /ag-ui/:agentId/capabilities': {
    row: { ...forEveryone, 'other agents': 'unknown' },
    path: () => '/ag-ui/a/capabilities',
  },
  // Each method has an action of its own: test/mcp/access.test.ts.
  'POST /mcp': { row: forEveryone, body: () => ({ jsonrpc: '2.0', id: 1, method: 'tools/list' }) },
  'POST /mcp/:agent': {
    row: { ...forEveryone, 'other agents': 'unknown' },
    path: () => '/mcp/a',
    body: () => ({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  },
  'GET /mcp/connect/:state': connects,
  'POST /mcp/connect/:state': connects,
  'GET /api/runs/:id/replay': ofRun('/replay?speed=max'),
  'GET /api/runs/:id/export': ofRun('/export'),
  'POST /api/runs/:id/fork': { ...ofRun('/fork', forks), body: () => ({ at: 1 }) },
  'GET /api/runs/:id/programs': ofRun('/programs'),
  'GET /api/diff': { row: reads, path: ({ run }) => `/api/diff?a=${run}&b=${run}` },
  'POST /api/runs/import': { row: imports, body: () => '', headers: { 'content-type': 'application/x-ndjson' } },
  'GET /api/runs': at('/api/runs?limit=200', lists),
  'POST /api/runs': {
    row: startsThere,
    body: ({ thread }) => ({ agentId: 'a', threadId: thread, input: { messages } }),
  },
  'GET /api/tests': at('/api/tests', admins),
  'GET /api/tests/:id': at('/api/tests/x%2Fhi', admins),
  'GET /api/tests/progress': at('/api/tests/progress', admins),
  'POST /api/tests/run': { row: admins, body: () => ({}) },
  'POST /api/tests/stop': { row: admins },
  'POST /api/tests/results': { row: admins, body: () => ({ results: [] }) },
  'GET /api/tests/draft': { row: { ...admins, admin: 'yes' }, path: ({ run }) => `/api/tests/draft?run=${run}` },
  'POST /api/tests': { row: { ...admins, admin: 'yes' }, body: ({ run }) => ({ run }) },
  'POST /api/tests/:id/accept': { ...ofTest('accept'), body: () => ({ etag: 'x' }) },
  'POST /api/tests/:id/discard': { ...ofTest('discard'), body: () => ({ etag: 'x' }) },
  'POST /api/tests/:id/undo': { ...ofTest('undo'), body: () => ({ etag: 'x' }) },
  'POST /api/tests/:id/rename': { ...ofTest('rename'), body: () => ({ name: 'y', etag: 'x' }) },
  'DELETE /api/tests/:id': { row: { ...admins, admin: 'unknown' }, path: () => '/api/tests/x%2Fnosuch' },
  'GET /api/feedback': at('/api/feedback', lists),
  'GET /api/runs/:id/feedback': ofRun('/feedback'),
  'POST /api/runs/:id/feedback': { ...ofRun('/feedback'), body: () => ({ verdict: 'up' }) },
  'DELETE /api/runs/:id/feedback': ofRun('/feedback'),
  'GET /api/runs/:id': ofRun(),
  'GET /api/runs/:id/events': ofRun('/events'),
  'POST /api/runs/:id/stop': { ...ofRun('/stop'), needs: 'waiting' },
  'GET /api/runs/:id/requests': ofRun('/requests'),
  'POST /api/runs/:id/requests/:requestId': {
    row: reads,
    needs: 'waiting',
    path: ({ run, request }) => `/api/runs/${run}/requests/${request}`,
    body: () => ({ approved: true }),
  },
  'POST /api/runs/:id/messages': {
    ...ofRun('/messages'),
    needs: 'waiting',
    body: () => ({ content: 'And shorter' }),
  },
  'DELETE /api/runs/:id/messages/:messageId': { ...ofRun('/messages/m1'), needs: 'waiting' },
  'GET /api/runs/:id/outline': ofRun('/outline'),
  'GET /api/runs/:id/prompt': {
    row: { ...reads, alice: 'forbidden', bob: 'forbidden', 'alice of beta': 'forbidden' },
    path: ({ run }) => `/api/runs/${run}/prompt?step=main/answer/1`,
  },
  'GET /api/events': { ...at('/api/events?after=0&types=run-start,run-end,text-delta', lists) },
  'GET /api/stats': at('/api/stats', forEveryone),
  'GET /api/live': at('/api/live?rows=1', lists),
  'GET /api/server': at('/api/server', forEveryone),
  'GET /api/threads': at('/api/threads?limit=200', lists),
  'GET /api/threads/:id': { row: reads, path: ({ thread }) => `/api/threads/${encodeURIComponent(thread)}` },
  'GET /api/search': at(`/api/search?q=${canary}&limit=200`, lists),
  'GET /api/audit': at('/api/audit', texts),
  'GET /api/usage': at('/api/usage', forEveryone),
  'GET /api/keys': at('/api/keys', keys),
  'POST /api/keys': { row: keys, body: () => ({ name: `k${++count}` }) },
  'DELETE /api/keys/:name': { row: noKey, path: () => '/api/keys/nosuch' },
  'POST /api/keys/:name/rotate': { row: noKey, path: () => '/api/keys/nosuch/rotate', body: () => ({}) },
  'POST /api/compact': { row: admins, body: () => ({ dryRun: true }) },
  'POST /api/prune': { row: admins, body: () => ({ dryRun: true, olderThan: '1d' }) },
  'DELETE /api/runs/:id': { ...ofRun('', deletes), needs: 'ended' },
  'POST /api/threads/:id/title': {
    row: renames,
    path: ({ thread }) => `/api/threads/${encodeURIComponent(thread)}/title`,
    body: () => ({ title: 'Ours' }),
  },
  'DELETE /api/threads/:id': {
    row: deletes,
    needs: 'ended',
    path: ({ thread }) => `/api/threads/${encodeURIComponent(thread)}`,
  },
}

const isUser = (caller: keyof typeof callers) => callers[caller].roles[0] === 'user'

async function asked(route: string, caller: Caller, ids: Ids): Promise<{ status: number; body: string }> {
  const { path, body, headers } = table[route]!
  const [method = '', pattern = ''] = route.split(' ')
  const leave = new AbortController()
  // Operators and admins name the threads of others as the log does.
  const named =
    caller === 'no one' || caller === 'expired' || isUser(caller)
      ? ids
      : { ...ids, thread: `${ids.thread}@@acme/alice` }
  const content = body?.(named)
  const request = new Request(`http://localhost${path?.(named) ?? pattern}`, {
    method,
    headers: {
      ...headersFor(caller),
      ...(content !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    signal: leave.signal,
    ...(content !== undefined && { body: typeof content === 'string' ? content : JSON.stringify(content) }),
  })
  const response = await handler(request)
  const { status } = response
  const isEndless = /^\/api\/(?:events|live)/u.test(path?.(named) ?? '')
  return { status, body: isEndless ? await beginningOf(response) : await response.text() }
}

/** Of a stream without an end: until all that was stored has come, which the caller's own mark shows. */
async function beginningOf(response: Response): Promise<string> {
  if (!response.ok) return response.text()
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let body = ''
  // The first piece is a keep-alive, the second has what is stored, if anything is.
  for (let i = 0; i < 2; i++) {
    const piece = await Promise.race([
      reader.read(),
      new Promise<undefined>((done) => setImmediate(() => setTimeout(done, 50))),
    ])
    if (piece === undefined || piece.done) break
    body += decoder.decode(piece.value, { stream: true })
  }
  await reader.cancel()
  return body
}

const withoutIds = (text: string, { run, thread, request }: Ids) =>
  [run, request, thread].filter(Boolean).reduce((rest, id) => rest.replaceAll(id, '<id>'), text)

describe('who may do what', () => {
  test('every route of the router is in the table, and no other', () => {
    expect(Object.keys(table).toSorted()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).toSorted())
  })

  test.for(Object.keys(table))('%s', async (route, { skip }) => {
    // Redis has no tables.
    if (route === 'GET /api/search' && engine.store.records === undefined) skip('there is nothing to search')
    const { row, needs, unasked } = table[route]!
    const another = () =>
      runOf({ waits: needs === 'waiting' || needs === 'sign-in', ...(needs === 'sign-in' && { agentId: 'connects' }) })
    let ids = await another()
    await engine.store.records?.settle()
    const unknown = { run: 'run_nobodys', thread: 'nobodys', request: 'run_nobodys.1' }
    for (const caller of everyone) {
      const { status, body } = await asked(route, caller, ids)
      const where = `${route} by ${caller}: ${status} ${body.slice(0, 300)}`
      if (caller === 'no one' || caller === 'expired') {
        if (unasked) expect(status, where).toBeLessThan(400)
        else expect({ status, shows: body.includes(canary) }, where).toEqual({ status: 401, shows: false })
        continue
      }
      const expected = row[caller]
      if (expected === 'forbidden') expect(status, where).toBe(403)
      else if (expected === 'refused') expect(status, where).toBe(400)
      else if (expected === 'no agent') expect(body, where).toContain('There is no agent')
      else if (expected === 'unknown') {
        expect(status, where).toBe(404)
        const nobodys = await asked(route, caller, unknown)
        expect({ status, body: withoutIds(body, ids) }, where).toEqual({
          status: nobodys.status,
          body: withoutIds(nobodys.body, unknown),
        })
      } else expect(status, where).toBeLessThan(route === 'POST /api/runs/import' ? 401 : 400)
      if (expected !== 'yes') expect(body.includes(canary), where).toBe(false)
      if (isUser(caller)) expect(body, where).not.toContain('secret prompt')
      // What it has changed is gone: the next one gets another.
      if (needs !== undefined && expected === 'yes') ids = await another()
    }
  })

  test('refusals are recorded nowhere: a waiting run of alice waits on', async () => {
    const ids = await runOf({ waits: true })
    for (const route of ['POST /api/runs/:id/stop', 'POST /api/runs/:id/requests/:requestId']) {
      for (const caller of ['bob', 'alice of beta', 'operator of beta'] as const) await asked(route, caller, ids)
    }
    expect((await engine.store.runs.get(ids.run))?.status).toBe('suspended')
    await engine.runtime.stop(ids.run)
  })
})

test('docs/access.md has this table', () => {
  const docs = readFileSync(new URL('../../docs/access.md', import.meta.url), 'utf8')
  const words: Record<Expected, string> = {
    yes: 'yes',
    own: 'own',
    unknown: '404',
    forbidden: '403',
    refused: '400',
    'no agent': '404',
  }
  const names = Object.keys(callers) as (keyof typeof callers)[]
  const lines = Object.entries(table)
    .filter(([, { unasked }]) => unasked !== true)
    .map(([route, { row }]) => `| \`${route}\` | ${names.map((name) => words[row[name]!]).join(' | ')} |`)
  for (const line of lines) expect(docs, lines.join('\n')).toContain(line)
})

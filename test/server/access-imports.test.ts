/** What an operator of one tenant gets by recordings that it has written itself: no agent and no run that is not its own. */
import { z } from 'zod'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/scripted.ts'
import type { Entry } from '../../src/part/entry.ts'
import { runUserOf } from '../../src/part/principal.ts'
import { agent, until } from '../support/engine.ts'
import { callers, createTestAccess, headersFor } from '../support/callers.ts'
import { startServer, type TestServer } from '../support/server.ts'

const headers = headersFor('operator of beta')
const user = runUserOf(callers['operator of beta'])!
const hiddenName = 'of-acme'
const secret = 'secret-9d1c'

async function start(): Promise<TestServer> {
  const m = createScriptedModel((call) =>
    JSON.stringify(call.options.prompt.at(-1)).includes('ask')
      ? [toolCall('wipe', { disk: 'a' }), finish('tool-calls')]
      : [text('Hello.'), finish()],
  )
  const wipe = { description: 'Wipes', parameters: z.looseObject({}), approval: true, execute: () => 'done' }
  const hidden = agent(`tools: [wipe]\nsystem: ${secret}`, 'access: { tenants: [acme] }')
  const agents = { a: agent('tools: [wipe]'), [hiddenName]: hidden }
  const server = await startServer({ agents, scripts: { m }, tools: { wipe } }, { access: createTestAccess() })
  onTestFinished(() => server.close())
  return server
}

/** The log of a run of the operator that waits for an approval. */
async function waitingLog({ runtime, store }: TestServer): Promise<{ entries: Entry[]; request: string }> {
  const run = await runtime.start('a', { messages: [{ role: 'user', content: 'ask' }] }, { user, protocol: 'ui' })
  await until(store, run.id, ({ type }) => type === 'suspend')
  const entries: Entry[] = []
  for await (const batch of store.log.read(run.id, { before: 1000 })) entries.push(...batch)
  await run.stop()
  const asked = entries.find((entry) => entry.type === 'request')!
  return { entries, request: asked.requestId }
}

async function imported({ url }: TestServer, entries: readonly object[]): Promise<Response> {
  const body = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
  const type = { 'content-type': 'application/x-ndjson' }
  return fetch(`${url}/api/runs/import`, { method: 'POST', headers: { ...headers, ...type }, body })
}

const asRun = ([first, ...rest]: readonly Entry[], more: object) => [{ ...first, ...more }, ...rest]

describe('an operator with recordings of its own', () => {
  test.each([
    ['an agent that is not here', { agent: 'gone', pipeline: agent('tools: [wipe]', '# another text') }],
    ['an agent that is not open to it', { agent: hiddenName, pipeline: agent('tools: [wipe]', '# another text') }],
    ['an agent of the text of one that is not open to it', {}],
  ])('of %s: it goes on as no agent that is not open to it, and none is named', async (_, more) => {
    const server = await start()
    const { entries, request } = await waitingLog(server)
    const text = server.runtime.agents.get(hiddenName)!.pipeline.text
    const named = { agent: 'gone', pipeline: text, ...more }
    expect((await imported(server, asRun(entries, { runId: 'mine', ...named }))).status).toBe(201)
    const answer = `/api/runs/mine/requests/${request}`
    const tries: [path: string, body: object][] = [
      [answer, { approved: true }],
      [answer, { approved: true, agentId: hiddenName }],
      [answer, { approved: true, agentId: hiddenName.slice(0, -1) }],
      ['/api/runs/mine/fork', { at: 1 }],
      ['/api/runs/mine/fork', { at: 1, agentId: hiddenName }],
      ['/api/runs/mine/fork', { at: 1, agentId: hiddenName.slice(0, -1) }],
    ]
    for (const [path, body] of tries) {
      const response = await server.post(path, body, { headers })
      const said = await response.text()
      const asked = 'agentId' in body ? String(body.agentId) : ''
      expect([403, 404], `${path} ${JSON.stringify(body)}: ${said}`).toContain(response.status)
      // What the caller itself has named is no news.
      const { message } = (JSON.parse(said) as { error: { message: string } }).error
      const shown = [asked, named.agent].reduce((rest, name) => rest.replace(`"${name}"`, ''), message)
      expect(shown, `${path} ${JSON.stringify(body)}`).not.toContain(hiddenName)
      expect(shown).not.toContain(secret)
    }
    expect((await server.store.runs.get('mine'))?.status).toBe('suspended')
    // One that is open to it works.
    expect((await server.post(answer, { approved: true, agentId: 'a' }, { headers })).status).toBe(200)
  })
})

/** What an operator of one tenant gets by recordings that it has written itself: no agent and no run that is not its own. */
import { z } from 'zod'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/scripted.ts'
import type { Entry, EntryOf } from '../../src/part/entry.ts'
import { plainThread, runUserOf } from '../../src/part/principal.ts'
import { agent, entriesOf, until } from '../support/engine.ts'
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

  const text = agent('tools: [wipe]\nsystem: forged')

  /** Of a recording that waits, and says that its text is its own. */
  async function forged(change: (entry: Entry) => object = (entry) => entry, agent = 'a') {
    const server = await start()
    const { entries, request } = await waitingLog(server)
    const lines = asRun(entries, { runId: 'mine', agent, pipeline: text, ownPipeline: true })
    expect(
      (
        await imported(
          server,
          lines.map((entry) => change(entry as Entry)),
        )
      ).status,
    ).toBe(201)
    return { server, request }
  }

  test('the text that it calls its own begins no next run: one that went on goes on as the agent here', async () => {
    const { server, request } = await forged()
    const said = { content: 'And now?', id: 'm1', mode: 'queue' }
    const tell = () => server.post('/api/runs/mine/messages', said, { headers })
    const refused = await tell()
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('recorded elsewhere')])
    const answer = `/api/runs/mine/requests/${request}`
    expect((await server.post(answer, { approved: true, agentId: 'a' }, { headers })).status).toBe(200)
    // Nobody has seen it: whoever finds it behind the end of the run starts the next one.
    await server.store.log.post('mine', 'message:m1', {
      mode: 'queue',
      content: 'And now?',
      protocol: 'api',
      sentAt: 1,
    })
    await expect.poll(async () => (await server.store.runs.get('mine'))?.status).toBe('completed')
    await server.runtime.recover()
    const next = async () => (await server.store.runs.list({})).find(({ title }) => title === 'And now?')
    await expect.poll(async () => (await next())?.status).toBe('completed')
    expect((await entriesOf(server.store, (await next())!.id))[0]).toMatchObject({
      agent: 'a',
      pipeline: server.runtime.agents.get('a')!.pipeline.text,
    })
  })

  test('nor does a turn of its conversation have it, whoever goes on: not as it is, not let go on, not trusted, not forked', async () => {
    const { server, request } = await forged()
    const { runtime, store } = server
    const file = runtime.agents.get('a')!.pipeline.text
    /** The text of the next turn behind a run. */
    const next = async (run: string): Promise<unknown> => {
      const { threadId } = (await store.runs.get(run))!
      const body = {
        agentId: 'a',
        threadId: plainThread(threadId),
        input: { messages: [{ role: 'user', content: 'On' }] },
      }
      const started = await server.post('/api/runs', body, { headers })
      const { id } = (await started.json()) as { id: string }
      return (await entriesOf(store, id))[0]
    }
    const isFile = expect.objectContaining({ agent: 'a', pipeline: file })
    expect(await next('mine')).toEqual(isFile)
    expect(await next('mine')).not.toHaveProperty('ownPipeline')
    expect(
      (await server.post('/api/runs/mine/requests/' + request, { approved: true, agentId: 'a' }, { headers })).ok,
    ).toBe(false)
    const whole = { agents: runtime.agents, user }
    const trusted = await runtime.fork('mine', { ...whole, at: 1, trust: true })
    expect(
      (await entriesOf(store, trusted.id)).some((entry) => entry.type === 'resume' && entry.pipeline === text),
    ).toBe(true)
    expect(await next(trusted.id)).toEqual(isFile)
    const named = await runtime.fork('mine', { ...whole, at: 1, agent: 'a' })
    expect(await next(named.id)).toEqual(isFile)
    // What somebody here has written counts.
    const given = await runtime.fork('mine', { ...whole, at: 1, pipeline: agent('system: ours') })
    expect(await next(given.id)).toMatchObject({ pipeline: agent('system: ours'), ownPipeline: true })
  })

  test('a recording whose continuation claims its own text neither', async () => {
    const server = await start()
    const { runtime, store } = server
    const run = await runtime.start('a', { messages: [{ role: 'user', content: 'ask' }] }, { user, protocol: 'ui' })
    await until(store, run.id, ({ type }) => type === 'suspend')
    const [asked] = (await entriesOf(store, run.id)).filter(({ type }) => type === 'request')
    await runtime.answer(run.id, (asked as EntryOf<'request'>).requestId, { kind: 'approval', approved: false })
    await until(store, run.id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(store, run.id)
    const claims = { agent: 'a', pipeline: text, ownPipeline: true }
    const lines = asRun(entries, { runId: 'mine', ...claims, forkedFrom: { runId: 'x', seq: 1 } }).map((entry) =>
      (entry as Entry).type === 'resume' ? { ...entry, ...claims } : entry,
    )
    expect(lines.filter((entry) => 'ownPipeline' in entry)).toHaveLength(2)
    expect((await imported(server, lines)).status).toBe(201)
    const { threadId } = (await store.runs.get('mine'))!
    const input = { messages: [{ role: 'user', content: 'On' }] }
    const next = await server.post('/api/runs', { agentId: 'a', threadId: plainThread(threadId), input }, { headers })
    const { id } = (await next.json()) as { id: string }
    expect((await entriesOf(store, id))[0]).toMatchObject({
      pipeline: runtime.agents.get('a')!.pipeline.text,
      threadId,
    })
  })

  test.each(['a', hiddenName])(
    'nor behind the end of one that nobody has let go on: it names %s, and its time was over',
    async (name) => {
      const { server } = await forged((entry) => (entry.type === 'request' ? { ...entry, deadline: 1 } : entry), name)
      const { runtime, store } = server
      const post = (run: string, content: string) =>
        store.log.post(run, 'message:m1', { mode: 'queue', content, protocol: 'api', sentAt: 1 })
      await post('mine', 'Forged')
      await runtime.recover()
      await expect.poll(async () => (await store.runs.get('mine'))?.status).toBe('interrupted')
      // The newest are looked at first.
      const own = await runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] }, { user })
      await own.result
      await post(own.id, 'Own')
      await runtime.recover()
      const titles = async () => (await store.runs.list({})).map(({ title }) => title)
      await expect.poll(titles).toContain('Own')
      await post('mine', 'Forged again')
      await runtime.recover()
      await post((await store.runs.list({ limit: 1 }))[0]!.id, 'Own again')
      await runtime.recover()
      await expect.poll(titles).toContain('Own again')
      expect((await titles()).filter((title) => title?.startsWith('Forged'))).toEqual([])
    },
  )
})

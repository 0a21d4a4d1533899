/** What it means that a client leaves: `cancel`, `{cancelAfter}`, `detach`, and when it means nothing. */
import { afterEach, expect, test } from 'vitest'
import { createScriptedModel, finish, latch } from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server.close())

const messages = [{ role: 'user', content: 'Hi' }]

/** A run that has said `half` and waits for its gate, with one client that has read it. */
async function begun(policy: string) {
  const gate = latch()
  const model = createScriptedModel([
    [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'half' },
      gate,
      { type: 'text-delta', id: 't', delta: ' whole' },
      { type: 'text-end', id: 't' },
      finish(),
    ],
  ])
  server = await startServer({ agents: { a: agent('', `onDisconnect: ${policy}`) }, scripts: { m: model } })
  const response = await server.post('/api/beddel/chat', { agentId: 'a', messages, id: 'c' })
  const id = response.headers.get('x-millrace-run-id')!
  const client = readBody(response)
  await client.until('half')
  return { gate, model, id, client }
}

const ended = (id: string) => until(server.store, id, ({ type }) => type === 'run-end')
const resume = async () => readBody(await fetch(`${server.url}/api/chat/c/stream`))

test('cancelAfter: who comes back in time finds the run alive, and the time begins anew when it leaves', async () => {
  const { id, client, gate } = await begun('{ cancelAfter: 400ms }')
  for (let i = 0; i < 3; i++) {
    const next = await resume()
    await next.until('half')
    await client.leave()
    await next.leave()
  }
  const last = await resume()
  await last.until('half')
  // Longer than the policy allows a run without a reader: this one has one.
  await new Promise((resolve) => setTimeout(resolve, 600))
  expect((await server.store.runs.get(id))?.status).toBe('running')
  gate.open()
  expect(framesOf(await last.rest()).at(-1)).toBe('done')
  expect(await ended(id)).toMatchObject({ outcome: 'completed' })
})

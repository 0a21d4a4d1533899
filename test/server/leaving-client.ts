/** A chat whose client leaves. */
import { onTestFinished } from 'vitest'
import { createScriptedModel, finish, latch } from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import { readBody, startServer, type TestServer } from '../support/server.ts'

export const messages = [{ role: 'user', content: 'Hi' }]

/** A run that has said `half` and waits for its gate, with one client that has read it. */
export async function begun(policy: string) {
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
  const server = await startServer({ agents: { a: agent('', `onDisconnect: ${policy}`) }, scripts: { m: model } })
  onTestFinished(() => server.close())
  const response = await server.post('/api/beddel/chat', { agentId: 'a', messages, id: 'c' })
  const id = response.headers.get('x-millrace-run-id')!
  const client = readBody(response)
  await client.until('half')
  return { server, gate, model, id, client }
}

export const ended = (server: TestServer, id: string) => until(server.store, id, ({ type }) => type === 'run-end')

export const resume = async (server: TestServer) => readBody(await fetch(`${server.url}/api/chat/c/stream`))

/** The caller's place in its trace, over every route that starts a run. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const messages = [{ role: 'user', content: 'Hi' }]
const uiMessages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]

async function start() {
  const m = createScriptedModel(Array.from({ length: 3 }, () => [text('Hi'), finish()]))
  const server = await startServer({ agents: { a: agent() }, scripts: { m } })
  onTestFinished(() => server.close())
  const recorded = async (id: string) => {
    const view = await (await fetch(`${server.url}/api/runs/${id}`)).json()
    const [first] = only(await entriesOf(server.store, id), 'run-start')
    expect(view.traceparent).toBe(first?.traceparent)
    return first?.traceparent
  }
  return { ...server, recorded }
}

const routes: [path: string, body: object][] = [
  ['/api/chat', { agentId: 'a', messages: uiMessages }],
  ['/api/beddel/chat', { agentId: 'a', messages: uiMessages }],
  ['/v1/chat/completions', { model: 'a', messages }],
  ['/v1/completions', { model: 'a', prompt: 'Hi' }],
  ['/api/runs', { agentId: 'a', input: { messages } }],
]

describe('traceparent', () => {
  test.each(routes)('POST %s records it in the start of the run; one that is none is ignored', async (path, body) => {
    const { post, runtime, recorded } = await start()
    const send = async (header: string | undefined) => {
      const response = await post(path, body, { headers: header === undefined ? {} : { traceparent: header } })
      expect(response.ok).toBe(true)
      await response.text()
      const id = response.headers.get('x-millrace-run-id')!
      const run = await runtime.open(id)
      await run!.result
      return recorded(id)
    }
    expect(await send(traceparent)).toBe(traceparent)
    expect(await send('00-nonsense-01')).toBeUndefined()
    expect(await send(undefined)).toBeUndefined()
  })

  test('a program passes it to `start`', async () => {
    const { runtime, recorded } = await start()
    const run = await runtime.start('a', { messages }, { traceparent })
    await run.result
    expect(await recorded(run.id)).toBe(traceparent)
  })
})

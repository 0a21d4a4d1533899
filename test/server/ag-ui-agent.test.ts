/** `MillraceAgent` on AG-UI's current client: what the server is told, judged by the official verifier. CopilotKit's is in ag-ui-peers. */
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { MillraceAgent } from '../../src/ag-ui/millrace-agent.ts'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  type ScriptedModel,
} from '../../src/models/testing/scripted-model.ts'
import { agent, until } from '../support/engine.ts'
import { cuttingProxy } from '../client/cutting-proxy.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

async function start(m: ScriptedModel) {
  // Only a stop stops it.
  server = await startServer({ agents: { a: agent('', 'onDisconnect: detach') }, scripts: { m } })
  const { url } = server
  const make = (config: object = {}) => new MillraceAgent({ url: `${url}/ag-ui/a`, threadId: 't', ...config })
  const newest = async () => (await server!.store.runs.list({}))[0]
  return { ...server, make, newest }
}

const said = ({ messages }: MillraceAgent) => messages.map(({ role, content }) => `${role}: ${content as string}`)
const hi = { id: 'm1', role: 'user' as const, content: 'Hi' }

describe('MillraceAgent', () => {
  test('connectAgent: the thread, and the answer that is being written; a new thread is empty', async () => {
    const gate = latch()
    const { make, newest, store } = await start(createScriptedModel([[text('Hel'), gate, text('lo'), finish()]]))
    const first = make()
    await first.connectAgent()
    expect(said(first)).toEqual([])
    first.addMessage(hi)
    const run = first.runAgent()
    await expect.poll(newest).toBeDefined()
    await until(store, (await newest())!.id, ({ type }) => type === 'text-delta')
    const back = make()
    const texts: string[] = []
    const connected = back.connectAgent(
      {},
      { onTextMessageContentEvent: ({ event }) => (texts.push(event.delta), gate.open()) },
    )
    await Promise.all([run, connected])
    expect([said(back), texts.join('')]).toEqual([['user: Hi', 'assistant: Hel', 'assistant: lo'], 'Hello'])
    expect(back.millraceRunId).toBe((await newest())!.id)
    const later = make()
    await later.connectAgent()
    expect(said(later)).toEqual(said(back))
  })

  test.each(['once it answers', 'before the agent knows the run', 'in a copy'])(
    'abortRun stops the run on the server: %s',
    async (when) => {
      const m = createScriptedModel([[text('Hel'), latch(), finish()]])
      const { make, newest } = await start(m)
      const isEarly = when === 'before the agent knows the run'
      const made: MillraceAgent = make({
        fetch: async (url: string, init: RequestInit) => {
          const response = await fetch(url, init)
          if (isEarly && url.includes('/ag-ui/')) made.abortRun()
          return response
        },
      })
      const client = when === 'in a copy' ? (made.clone() as MillraceAgent) : made
      client.addMessage(hi)
      const events: string[] = []
      const onEvent = ({ event }: { event: { type: string } }) => {
        events.push(event.type)
        if (event.type === 'TEXT_MESSAGE_CONTENT' && !isEarly) client.abortRun()
      }
      await client.runAgent({}, { onEvent })
      expect([events.at(-1), (await newest())!.status]).toEqual(['RUN_FINISHED', 'aborted'])
    },
  )

  // Vitest fails on what is thrown where nobody can catch it, as Node ends.
  test.each(['the body ends', 'the connection breaks'])('an answer that is cut off is one error: %s', async (how) => {
    const gate = latch()
    const { url, newest } = await start(createScriptedModel([[text('Hel'), gate, text('lo'), finish()]]))
    const proxy = await cuttingProxy(url)
    onTestFinished(proxy.close)
    const client = new MillraceAgent({
      url: `${proxy.url}/ag-ui/a`,
      threadId: 't',
      fetch: async (address: string, init: RequestInit) => {
        const response = await fetch(address, init)
        if (how !== 'the body ends') return response
        const reader = response.body!.getReader()
        const body = new ReadableStream({
          async pull(controller) {
            const { value } = await reader.read().catch(() => ({ value: undefined }))
            if (value === undefined) controller.close()
            else controller.enqueue(value)
          },
        })
        return new Response(body, response)
      },
    })
    client.addMessage(hi)
    const failures: string[] = []
    const run = client.runAgent(
      {},
      {
        onTextMessageContentEvent: () => proxy.cut(),
        onRunFailed: ({ error }) => void failures.push(error.message),
      },
    )
    await expect(run).rejects.toThrow('cut off')
    expect([failures, said(client).at(-1)]).toEqual([[expect.stringContaining('cut off')], 'assistant: Hel'])
    gate.open()
    await expect.poll(async () => (await newest())!.status).toBe('completed')
  })
})

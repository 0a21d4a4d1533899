/** `GET /ag-ui/:agentId/connect`: a client that comes to a thread, or comes back, in each state of its newest run. */
import { HttpAgent } from '@ag-ui/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import type { AgUiEvent } from '../../src/wire/ag-ui/ag-ui-event.ts'
import { checkIds, createAgUiClient, only, textsOf } from '../support/ag-ui.ts'
import { agUiRuns } from '../ag-ui-judge.ts'
import { agent, until } from '../support/engine.ts'
import { framesOf, startServer } from '../support/server.ts'

const locate = { name: 'locate', description: 'Where the user is', parameters: { type: 'object', properties: {} } }
const pay = { parameters: z.looseObject({}), approval: true, execute: () => 'paid' }

async function serving(
  script: ScriptStep[][],
  yaml = '',
  top = '',
  authorize: (request: Request) => boolean = () => true,
) {
  const model = createScriptedModel(script)
  const agents = { a: agent(yaml, top) }
  const server = await startServer({ agents, scripts: { m: model }, tools: { pay } }, { authorize })
  onTestFinished(() => server.close())
  return { ...server, model }
}

/** A client without any messages. What it has in the end is what the page shows. */
async function connect(url: string, threadId: string, onEvent: (event: AgUiEvent) => void = () => undefined) {
  let body: Promise<string> | undefined
  class Joining extends HttpAgent {
    protected override requestInit(): RequestInit {
      return { method: 'GET', headers: { accept: 'text/event-stream' }, signal: this.abortController.signal }
    }
  }
  const client = new Joining({
    url: `${url}/ag-ui/a/connect?threadId=${threadId}&protocolVersion=1.0`,
    threadId,
    fetch: async (address, init) => {
      const response = await fetch(address, init)
      const [mine, its] = response.body!.tee()
      body = new Response(mine).text()
      return new Response(its, response)
    },
  })
  await client.runAgent({}, { onEvent: ({ event }) => onEvent(event as unknown as AgUiEvent) })
  const events = framesOf((await body)!) as unknown as AgUiEvent[]
  expect(agUiRuns(events)).toHaveLength(1)
  checkIds(events, threadId)
  return { client, messages: client.messages, events, end: events.at(-1)! }
}

/** The conversation as its own client has it. */
const shown = (messages: readonly { role: string }[]) =>
  messages.map((message) => {
    const { role, content, toolCalls, toolCallId } = message as unknown as Record<string, unknown>
    return { role, content: content ?? '', toolCalls, toolCallId }
  })

describe('AG-UI: connect', () => {
  test('in the middle of a text: what was said so far, then what comes', async () => {
    const gates = [latch(), latch()] as const
    const { url } = await serving([
      [
        reasoning('Hm.'),
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'one' },
        gates[0],
        { type: 'text-delta', id: 't', delta: ' two' },
        { type: 'text-end', id: 't' },
        finish(),
      ],
    ])
    const client = createAgUiClient(url)
    client.say('Hi')
    let joining: ReturnType<typeof connect> | undefined
    const own = await client.run({ runId: 'r1' }, (event) => {
      if (event.type !== 'TEXT_MESSAGE_CONTENT' || joining !== undefined) return
      joining = connect(url, client.threadId, ({ type }) => {
        if (type === 'TEXT_MESSAGE_CONTENT') gates[0].open()
      })
    })
    const joined = await joining!
    expect(only(joined.events, 'MESSAGES_SNAPSHOT')).toMatchObject([{ messages: [{ role: 'user', content: 'Hi' }] }])
    expect(only(joined.events, 'TEXT_MESSAGE_CONTENT').map(({ delta }) => delta)).toEqual(['one', ' two'])
    expect(joined.events[0]).toMatchObject({ runId: 'r1' })
    expect(joined.end).toEqual(own.end)
    expect(joined.messages).toEqual(client.agent.messages)
  })

  test('suspended: the snapshot, the open call again, and what is pending; then it answers', async () => {
    const { url, model } = await serving([
      [text('Where? '), toolCall('c1', 'locate'), finish('tool-calls')],
      [text('Rome it is.'), finish()],
    ])
    const client = createAgUiClient(url, { tools: [locate] })
    client.say('Hi')
    const { run } = await client.run()
    const { client: other, end, messages } = await connect(url, client.threadId)
    expect(end).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: ['c1'] } })
    expect(messages).toEqual(client.agent.messages)

    const page = createAgUiClient(url, { threadId: client.threadId, messages: other.messages, tools: [locate] })
    page.answer('c1', 'Rome')
    const answered = await page.run()
    expect([answered.run, model.calls.length]).toEqual([run, 2])
    expect(textsOf(page.agent.messages)).toEqual(['Where? ', 'Rome it is.'])
  })

  test('an open approval is an interrupt for who joins, too', async () => {
    const { url } = await serving(
      [
        [toolCall('c1', 'pay'), finish('tool-calls')],
        [text('Paid.'), finish()],
      ],
      'tools: [pay]',
    )
    const client = createAgUiClient(url)
    client.say('Pay')
    const { end } = await client.run()
    const joined = await connect(url, client.threadId)
    expect(joined.end).toEqual(end)
    expect(joined.client.pendingInterrupts).toHaveLength(1)
    expect(joined.messages).toEqual(client.agent.messages)
  })

  test('a run that was continued: its earlier parts are in the snapshot, also what its client has answered', async () => {
    const gate = latch()
    const { url } = await serving([
      [reasoning('Hm.'), text('First. '), toolCall('c1', 'locate', { exact: true }), finish('tool-calls')],
      [text('Second. '), toolCall('c2', 'locate'), finish('tool-calls')],
      [text('Third'), gate, text('!'), finish()],
    ])
    const client = createAgUiClient(url, { tools: [locate] })
    client.say('Hi')
    await client.run({ runId: 'r1' })
    client.answer('c1', '{"city":"Rome"}')
    await client.run({ runId: 'r2' })
    client.answer('c2', 'no GPS', 'no GPS')
    let joining: ReturnType<typeof connect> | undefined
    await client.run({ runId: 'r3' }, ({ type }) => {
      if (type === 'TEXT_MESSAGE_CONTENT')
        joining ??= connect(url, client.threadId, (event) => event.type === 'TEXT_MESSAGE_CONTENT' && gate.open())
    })
    const joined = await joining!
    expect(joined.events[0]).toMatchObject({ runId: 'r3' })
    expect(shown(joined.messages)).toEqual(shown(client.agent.messages))
    expect(shown(joined.messages).map(({ role }) => role)).toEqual([
      'user',
      'reasoning',
      'assistant',
      'tool',
      'assistant',
      'tool',
      'assistant',
      'assistant',
    ])
  })

  test('nothing running: the conversation, and the end; a thread of two turns', async () => {
    const { url } = await serving([
      [reasoning('Hm.'), text('Hello.'), finish()],
      [toolCall('c1', 'nothing'), finish('tool-calls')],
      [text('Bye.'), finish()],
    ])
    const client = createAgUiClient(url, { state: { page: 1 } })
    client.say('Hi')
    await client.run()
    client.say('Bye')
    await client.run({ runId: 'r2' })
    const { events, messages } = await connect(url, client.threadId)
    expect(events.map(({ type }) => type)).toEqual([
      'RUN_STARTED',
      'MESSAGES_SNAPSHOT',
      'STATE_SNAPSHOT',
      'RUN_FINISHED',
    ])
    expect(events.at(-1)).toMatchObject({ runId: 'r2', outcome: { type: 'success' } })
    expect(shown(messages)).toEqual(shown(client.agent.messages))
    expect(messages.map(({ id }) => id)).toEqual(client.agent.messages.map(({ id }) => id))
  })

  test('an unknown thread is 404, a missing one 400, an unknown agent 404 with a hint', async () => {
    const { url } = await serving([])
    const of = async (path: string) => {
      const response = await fetch(url + path)
      return [response.status, ((await response.json()) as { error: { message: string } }).error.message] as const
    }
    expect(await of('/ag-ui/a/connect?threadId=none')).toEqual([404, 'There is no thread none.'])
    expect(await of('/ag-ui/a/connect')).toEqual([400, expect.stringContaining('threadId must be')])
    expect(await of('/ag-ui/b/connect?threadId=x')).toEqual([404, expect.stringContaining('b')])
  })

  test('who connects is a reader: the run goes on when the one who asked leaves', async () => {
    const gate = latch()
    const left = latch()
    const { url, store } = await serving(
      [[text('one'), gate, text(' two'), finish()]],
      '',
      'onDisconnect: cancel',
      ({ method, signal }) => {
        if (method === 'POST') signal.addEventListener('abort', () => left.open())
        return true
      },
    )
    const client = createAgUiClient(url)
    client.leaves()
    client.say('Hi')
    let joining: ReturnType<typeof connect> | undefined
    const { run } = await client.run({}, ({ type }) => {
      if (type !== 'TEXT_MESSAGE_CONTENT' || joining !== undefined) return
      joining = connect(url, client.threadId, (event) => {
        if (event.type === 'TEXT_MESSAGE_CONTENT') client.agent.abortRun()
      })
    })
    // The server has seen that the first one is gone. A stop would have taken effect in the time of these requests.
    await left.opened
    for (let i = 0; i < 10; i++) {
      const { status } = (await (await fetch(`${url}/api/runs/${run}`)).json()) as { status: string }
      expect(status).toBe('running')
    }
    gate.open()
    expect((await joining!).end).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
    expect(await until(store, run, ({ type }) => type === 'run-end')).toMatchObject({ outcome: 'completed' })
  })
})

/** Who reads AG-UI: clients older than 1.0, clients that take protobuf, and curl. */
import { HttpAgent, type BaseEvent, type RunAgentInput } from '@ag-ui/client'
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
import { createAgUiClient, textsOf } from '../support/ag-ui.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { framesOf, startServer } from '../support/server.ts'

const locate = { name: 'locate', description: 'Where the user is', parameters: { type: 'object', properties: {} } }
const add = { parameters: z.looseObject({}), execute: () => ({ sum: 3 }) }
const pay = { parameters: z.looseObject({}), approval: true, execute: () => 'paid' }

async function serving(script: ScriptStep[][], yaml = '', more: Partial<EngineOptions> = {}) {
  const model = createScriptedModel(script)
  const server = await startServer({ agents: { a: agent(yaml) }, scripts: { m: model }, tools: { add, pay }, ...more })
  onTestFinished(() => server.close())
  return { ...server, model }
}

describe('AG-UI: official clients', () => {
  test('a client older than 1.0: text, reasoning, tools of both sides, an approval; no pendingToolCallIds', async () => {
    const { url, store } = await serving(
      [
        [reasoning('Hm.'), text('Let me see. '), toolCall('c1', 'locate'), toolCall('c2', 'add'), finish('tool-calls')],
        [toolCall('c3', 'pay'), finish('tool-calls')],
        [text('Done.'), finish()],
      ],
      'tools: [add, pay]',
    )
    const client = createAgUiClient(url, { old: true, tools: [locate] })
    client.say('Hi')
    const first = await client.run({ runId: 'r1' })
    expect(first.end).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
    expect(first.end).not.toHaveProperty('outcome.pendingToolCallIds')
    client.answer('c1', 'Rome')
    const second = await client.run({ runId: 'r2' })
    expect(second.end).toMatchObject({ outcome: { type: 'interrupt', interrupts: [{ toolCallId: 'c3' }] } })
    const { interrupts } = (second.end as { outcome: { interrupts: { id: string }[] } }).outcome
    const third = await client.run({
      resume: [{ interruptId: interrupts[0]!.id, status: 'resolved', payload: { approved: true } }],
    })
    expect(third.end).toMatchObject({ outcome: { type: 'success' }, result: 'Done.' })
    expect(textsOf(client.agent.messages)).toContain('Done.')
    expect(await store.runs.list({ threadId: client.threadId })).toHaveLength(1)
  })

  test('a client older than 1.0 is told of a stop as an error with the code cancelled', async () => {
    const gate = latch()
    const { url, post } = await serving([[text('one'), gate, finish()]])
    const client = createAgUiClient(url, { old: true })
    client.say('Hi')
    let started = ''
    const { end } = await client.run({}, (event) => {
      if (event.type === 'RUN_STARTED') started = (event.metadata!['millrace'] as { runId: string }).runId
      if (event.type === 'TEXT_MESSAGE_CONTENT') void post(`/api/runs/${started}/stop`, {})
    })
    expect(end).toMatchObject({ type: 'RUN_ERROR', code: 'cancelled' })
  })

  const proto = 'application/vnd.ag-ui.event+proto'

  test('protobuf carries the same events as SSE', async () => {
    const { url } = await serving(
      [
        [reasoning('Hm.'), text('Let me see 😀. '), toolCall('c1', 'add', { a: 1 }), finish('tool-calls')],
        [text('3'), finish()],
      ],
      'tools: [add]',
    )
    const client = createAgUiClient(url, { state: { page: 7 } })
    client.say('1+2?')
    const { events: sse } = await client.run({ runId: 'r1' })
    const types: (string | null)[] = []
    class Binary extends HttpAgent {
      protected override requestInit(input: RunAgentInput): RequestInit {
        const init = super.requestInit(input)
        return { ...init, headers: { ...(init.headers as Record<string, string>), Accept: proto } }
      }
    }
    const binary = new Binary({
      url: `${url}/ag-ui/a`,
      threadId: client.threadId,
      initialState: { page: 7 },
      initialMessages: client.agent.messages.slice(0, 1),
      fetch: async (address, init) => {
        const response = await fetch(address, init)
        types.push(response.headers.get('content-type'))
        return response
      },
    })
    const events: BaseEvent[] = []
    // The same request again: it reads the same run.
    await binary.runAgent({ runId: 'r1' }, { onEvent: ({ event }) => void events.push(event) })
    expect(types).toEqual([proto])
    const plain = (list: unknown) => JSON.parse(JSON.stringify(list)) as object[]
    expect(plain(events).map(withoutTool)).toEqual(merged(plain(sse)).map(withoutTool))
    expect(binary.messages).toEqual(client.agent.messages)
  })

  /** Protobuf has no `role: tool` on results. Deltas that were merged have the time of one of them. */
  function withoutTool(event: object): object {
    const { role, timestamp, ...rest } = event as { role?: string; timestamp?: number }
    return { ...rest, ...(role !== 'tool' && { role }), ...(!('delta' in rest) && { timestamp }) }
  }

  /** A later reader gets adjacent deltas as one. */
  function merged(events: object[]): object[] {
    const list: { type?: string; messageId?: string; delta?: string }[] = []
    for (const event of events as typeof list) {
      const last = list.at(-1)
      const joins = last?.delta !== undefined && last.type === event.type && last.messageId === event.messageId
      if (joins) last.delta += event.delta ?? ''
      else list.push({ ...event })
    }
    return list
  }

  test.each([
    ['*/*', 'text/event-stream'],
    [`text/event-stream, ${proto}`, proto],
    [`text/event-stream, ${proto};q=0.9`, 'text/event-stream'],
    [`${proto};q=0.5, text/event-stream`, 'text/event-stream'],
    [`${proto}, text/event-stream;q=0.5`, proto],
    [undefined, 'text/event-stream'],
  ])('Accept: %s is answered with %s', async (accept, type) => {
    const { post } = await serving([[text('ok'), finish()]])
    const input = { threadId: 't', runId: 'r', messages: [{ id: 'u', role: 'user', content: 'Hi' }] }
    const response = await post('/ag-ui/a', input, accept === undefined ? {} : { headers: { accept } })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
    const body = new Uint8Array(await response.arrayBuffer())
    if (type === proto) {
      // Whole messages, each behind its length.
      const view = new DataView(body.buffer)
      let at = 0
      let count = 0
      for (; at < body.length; count++) at += 4 + view.getUint32(at)
      expect([at, count > 4]).toEqual([body.length, true])
    } else {
      expect(framesOf(new TextDecoder().decode(body)).at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
      expect(response.headers.get('cache-control')).toBe('no-cache, no-transform')
    }
  })
})

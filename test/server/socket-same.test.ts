/** The same run over `POST /ag-ui/<agent>` and over Socket.IO: the same events, apart from the boundary of a client's tool. */
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel as createPlayer } from '../../src/models/scripted.ts'
import {
  createScriptedModel,
  errorPart,
  finish,
  reasoning,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import type { AgUiEvent } from '../../src/wire/ag-ui/ag-ui-event.ts'
import { parseSse } from '../sse.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, judged, pick, runInput, transports, user } from '../support/socket.ts'

let server: TestServer
afterEach(() => server.close())

const add = { description: 'Adds', parameters: z.object({ a: z.number() }), execute: ({ a }: { a: number }) => a + 1 }
const wipe = { description: 'Wipes', parameters: z.object({}), approval: true, execute: () => 'wiped' }
const scripts: Record<string, () => ScriptStep[][]> = {
  text: () => [[reasoning('Hm', '…'), text('Hel', 'lo ', '😀'), finish()]],
  'tools of the server, in parallel': () => [
    [text('Let me see. '), toolCall('c1', 'add', { a: 1 }), toolCall('c2', 'add', { a: 'no' }), finish('tool-calls')],
    [text('Done.'), finish()],
  ],
  'an approval': () => [[toolCall('c1', 'wipe'), finish('tool-calls')]],
  'an error': () => [[text('Hel'), errorPart(new Error('broken'))]],
}

async function start(script: ScriptStep[][]) {
  const model = () => createScriptedModel(script)
  const runs = [model(), model(), model()]
  const agents = Object.fromEntries(
    runs.map((_, i) => [`a${i}`, agent('tools: [add, wipe]').replace('script:m', `script:m${i}`)]),
  )
  const models = Object.fromEntries(runs.map((each, i) => [`m${i}`, each]))
  server = await startServer({ agents, scripts: models, tools: { add, wipe } })
}

async function overHttp(input: Record<string, unknown>): Promise<AgUiEvent[]> {
  const answer = await server.post('/ag-ui/a0', runInput(input), { headers: { accept: 'text/event-stream' } })
  const body = new Uint8Array(await answer.arrayBuffer())
  return parseSse(body).map(({ data }) => JSON.parse(data) as AgUiEvent)
}

/** Without what differs between two runs: times, the thread, and our ids. */
function plain(events: readonly AgUiEvent[]): unknown {
  const said = JSON.stringify(events)
    .replaceAll(/run_[0-9a-f]{32}(?:\.[\w-]+)?/gu, 'run')
    .replaceAll(/"threadId":"t\d"/gu, '"threadId":"t"')
    .replaceAll(/"model":"m\d"/gu, '"model":"m"')
    .replaceAll(/script:m\d/gu, 'script:m')
    .replaceAll(/"expiresAt":"[^"]*"/gu, '"expiresAt":""')
    .replaceAll(/"timestamp":\d+/gu, '"timestamp":0')
  return JSON.parse(said)
}

describe('Socket.IO and HTTP', () => {
  test.each(Object.keys(scripts))('%s', async (name) => {
    await start(scripts[name]!())
    const http = await overHttp({ threadId: 't0' })
    expect(http.length).toBeGreaterThan(5)
    await judged(http)
    for (const [i, transport] of transports.entries()) {
      const client = await connectSocket(server.url, transport)
      await client.run({ threadId: `t${i + 1}`, forwardedProps: { agent: `a${i + 1}` } })
      expect(plain(await client.ended('r'))).toEqual(plain(http))
    }
  })

  test('a client’s tool: over HTTP the stream ends there, over Socket.IO it goes on with the result', async () => {
    const model = createPlayer(({ options: { prompt } }) =>
      prompt.at(-1)!.role === 'tool' ? [text('Thanks.')] : [text('Which? '), toolCall('c1', 'pick')],
    )
    server = await startServer({ agents: { a0: agent() }, scripts: { m: model } })
    const first = await overHttp({ threadId: 'h', tools: [pick] })
    const said = first.find((event) => event.type === 'TEXT_MESSAGE_START') as unknown as { messageId: string }
    const call = { id: 'c1', type: 'function', function: { name: 'pick', arguments: '{}' } }
    const messages = [
      user('Hi'),
      { id: said.messageId, role: 'assistant', content: 'Which? ', toolCalls: [call] },
      { id: 'm', role: 'tool', toolCallId: 'c1', content: '7' },
    ]
    const second = await overHttp({ threadId: 'h', runId: 'r2', tools: [pick], messages })
    const client = await connectSocket(server.url)
    await client.run({ threadId: 's', tools: [pick] })
    await client.until(({ event }) => event.type === 'TOOL_CALL_END')
    await client.send('tool_result', { messageId: 'm', toolCallId: 'c1', content: '7', role: 'tool' })
    const whole = await client.ended('r')
    await judged(whole)
    const boundary = new Set([
      'RUN_STARTED',
      'MESSAGES_SNAPSHOT',
      'STATE_SNAPSHOT',
      'RUN_FINISHED',
      'STEP_STARTED',
      'STEP_FINISHED',
      'TOOL_CALL_RESULT',
    ])
    const inside = (events: AgUiEvent[]) => events.filter(({ type }) => !boundary.has(type))
    expect(ids(inside(whole))).toEqual(ids([...inside(first), ...inside(second)]))
    expect(whole.filter(({ type }) => type === 'TOOL_CALL_RESULT')).toMatchObject([{ toolCallId: 'c1', content: '7' }])
    expect([...first, ...second].filter(({ type }) => type === 'TOOL_CALL_RESULT')).toEqual([])
  })
})

/** A result that is sent is a message, too, so the numbers behind it differ. */
function ids(events: readonly AgUiEvent[]): unknown {
  return JSON.parse(JSON.stringify(plain(events)).replaceAll(/run:\d+/gu, 'run:n'))
}

/** The gate of `approval-gate.test.ts` over AG-UI and Socket.IO: a client sees the call of its own tool once it was approved. */
import { afterEach, describe, expect, test } from 'vitest'
import { finish, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import type { AgUiEvent } from '../../src/wire/ag-ui/ag-ui-event.ts'
import { createAgUiClient, only, textsOf } from '../support/ag-ui.ts'
import { agent } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, judged, textOf } from '../support/socket.ts'

let server: TestServer
afterEach(() => server.close())

const wipeOnce = (prompt: Told['prompts'][number]): ScriptStep[] =>
  resultsIn(prompt).size === 0
    ? [text('I wipe.'), toolCall('c1', 'wipe', { disk: 'a' }), finish('tool-calls')]
    : [text(JSON.stringify([...resultsIn(prompt).values()])), finish()]
const parameters = { type: 'object', properties: { disk: { type: 'string' } }, required: ['disk'] }
const wipe = { name: 'wipe', description: 'Wipes a disk', parameters }
const inYaml = 'tools: [{ name: wipe, client: true, approval: true, parameters: { disk: { type: string } } }]'
const ways = [
  ['the file', inYaml, []],
  ['metadata.approval', '', [{ ...wipe, metadata: { approval: true } }]],
  ['confirm', '', [{ ...wipe, confirm: true }]],
] as const

async function start(yaml: string) {
  const model = createTold(wipeOnce)
  server = await startServer({ agents: { a: agent(yaml) }, scripts: { m: model } })
  return model
}

const calls = (events: readonly AgUiEvent[]) => events.filter(({ type }) => type.startsWith('TOOL_CALL_'))
function interruptOf(events: readonly AgUiEvent[]) {
  const { outcome } = only(events, 'RUN_FINISHED')[0]!
  if (outcome?.type !== 'interrupt') throw new Error(`no interrupt: ${JSON.stringify(outcome)}`)
  return outcome.interrupts[0]!
}

// The official client sends no keys of a tool that the protocol does not know.
describe.each(ways.slice(0, 2))('AG-UI, marked by %s', (_, yaml, tools) => {
  test('an interrupt, then the call with the arguments that were approved, then its result', async () => {
    const model = await start(yaml)
    const client = createAgUiClient(server.url, { tools: [...tools] })
    client.say('Wipe a')
    const first = await client.run()
    expect(calls(first.events)).toEqual([])
    const interrupt = interruptOf(first.events)
    expect(interrupt).toMatchObject({ toolCallId: 'c1', metadata: { toolName: 'wipe', input: { disk: 'a' } } })
    const payload = { approved: true, editedArgs: { disk: 'b' } }
    const second = await client.run({ resume: [{ interruptId: interrupt.id, status: 'resolved', payload }] })
    expect(calls(second.events).map(({ type }) => type)).toEqual(['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END'])
    expect(only(second.events, 'TOOL_CALL_ARGS')[0]).toMatchObject({ toolCallId: 'c1', delta: '{"disk":"b"}' })
    expect(second.end).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: ['c1'] } })
    expect(second.run).toBe(first.run)
    client.answer('c1', 'wiped')
    const third = await client.run()
    expect(third.end).toMatchObject({ outcome: { type: 'success' } })
    expect(textsOf(client.agent.messages).at(-1)).toMatch(/other arguments: .*b.*wiped/u)
    expect(model.prompts).toHaveLength(2)
  })

  test('the call’s own arguments are a plain approval, also when it is repeated', async () => {
    await start(yaml)
    const client = createAgUiClient(server.url, { tools: [...tools] })
    client.say('Wipe a')
    const { id: interruptId } = interruptOf((await client.run()).events)
    const payload = { approved: true, editedArgs: { disk: 'a' } }
    for (let times = 0; times < 2; times++) {
      const { end } = await client.run({ resume: [{ interruptId, status: 'resolved', payload }] })
      expect(end).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: ['c1'] } })
    }
    client.answer('c1', 'wiped')
    await client.run()
    expect(textsOf(client.agent.messages).at(-1)).not.toContain('other arguments')
  })

  test('denied: the client never sees the call, and the model is told the reason', async () => {
    const model = await start(yaml)
    const client = createAgUiClient(server.url, { tools: [...tools] })
    client.say('Wipe a')
    const { id: interruptId } = interruptOf((await client.run()).events)
    const payload = { approved: false, reason: 'my thesis' }
    const { events, end } = await client.run({ resume: [{ interruptId, status: 'resolved', payload }] })
    expect([calls(events), end.type]).toEqual([[], 'RUN_FINISHED'])
    expect(JSON.stringify(model.prompts.at(-1))).toContain('my thesis')
  })
})

describe.each(ways)('Socket.IO, marked by %s', (_, yaml, tools) => {
  test('the same; a result before the approval is refused', async () => {
    const model = await start(yaml)
    const client = await connectSocket(server.url)
    const messages = [{ id: 'u', role: 'user', content: 'Wipe a' }]
    await client.run({ runId: 'r1', messages, tools })
    const first = await client.ended('r1')
    expect(calls(first)).toEqual([])
    const result = { messageId: 'm', toolCallId: 'c1', content: 'wiped', role: 'tool' }
    expect((await client.send('tool_result', result)).ok).toBe(false)
    const resume = [{ interruptId: interruptOf(first).id, status: 'resolved', payload: { approved: true } }]
    await client.run({ runId: 'r2', messages: [], tools, resume })
    await client.until(({ event }) => event.type === 'TOOL_CALL_END')
    // The model was not asked again with a result that came too early.
    expect(model.prompts).toHaveLength(1)
    expect(await client.send('tool_result', { ...result, content: 'wiped now' })).toMatchObject({ ok: true })
    const second = await client.ended('r2')
    expect(textOf(second)).toContain('wiped now')
    await judged(first)
    await judged(second)
    client.close()
  })
})

/** Following a run over Socket.IO from any position: what a client has and what it is sent then are the whole. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel as createPlayer } from '../../src/models/scripted.ts'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import type { AgUiEvent } from '../../src/wire/ag-ui/ag-ui-event.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectSocket, isTerminal, judged, pick, textOf, user, type Sent } from '../support/socket.ts'

let server: TestServer
afterEach(() => server.close())

const bare = (sent: readonly Sent[]) => sent.map(({ event }) => event)
/** Neighbouring deltas as one: a replay from the start sends finished blocks in few events. */
function merged(events: readonly AgUiEvent[]): unknown[] {
  const whole: Record<string, unknown>[] = []
  for (const { timestamp: _, ...event } of events as (AgUiEvent & { delta?: unknown })[]) {
    const last = whole.at(-1)
    const isSame =
      last?.['type'] === event.type && typeof event.delta === 'string' && /_(CONTENT|ARGS)$/u.test(event.type)
    if (isSame) last['delta'] = String(last['delta']) + String(event.delta)
    else whole.push({ ...event })
  }
  return whole
}

const tools = { add: { description: 'Adds', parameters: {} as never, execute: () => 3 } }

describe('Socket.IO: watching', () => {
  test('from every position, with the client’s tool answered on the way: exactly the rest', async () => {
    const model = createScriptedModel([
      [
        reasoning('Hm', '…'),
        text('I ', 'ask. '),
        toolCall('c1', 'pick', { a: 1 }),
        toolCall('c2', 'pick'),
        finish('tool-calls'),
      ],
      [text('Than', 'ks 😀'), finish()],
    ])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const client = await connectSocket(server.url)
    const { millraceRunId: runId } = await client.run({ tools: [pick], state: { n: 1 } })
    for (const id of ['c1', 'c2']) {
      await client.until(({ event }) => event.type === 'TOOL_CALL_END' && event.toolCallId === id)
      await client.send('tool_result', { messageId: id, toolCallId: id, content: '1', role: 'tool' })
    }
    const whole = await client.ended('r')
    await judged(whole)
    const later = await connectSocket(server.url)
    for (const [i, { with: after }] of client.sent.entries()) {
      later.sent.length = 0
      const ack = await later.send('watch_run', { runId, after, protocolVersion: '1.0' })
      expect(ack).toEqual({ ok: true, runId: 'r', threadId: 't', millraceRunId: runId })
      await expect.poll(() => server.sockets.counts().runs).toBe(0)
      await later.send('nothing', {})
      expect(bare(later.sent)).toEqual(whole.slice(i + 1))
      expect(later.sent.map((sent) => sent.with)).toEqual(client.sent.slice(i + 1).map((sent) => sent.with))
    }
    later.sent.length = 0
    await later.send('watch_run', { runId, protocolVersion: '1.0' })
    expect(merged(await later.ended('r'))).toEqual(merged(whole))
    // Positions are distinct: nothing is between two of them.
    expect(new Set(client.sent.map((sent) => JSON.stringify(sent.with))).size).toBe(client.sent.length)
  })

  test('eight clients watch one run from different positions, with a second run on each, of which some are stopped', async () => {
    const gates = [latch(), latch()]
    const words = Array.from({ length: 40 }, (_, i) => `w${i} `)
    const model = createPlayer((call) => {
      const isMain = JSON.stringify(call.options.prompt).includes('main')
      return isMain
        ? [text(...words.slice(0, 20)), gates[0]!, text(...words.slice(20)), finish()]
        : [text('own'), gates[1]!, finish()]
    })
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const first = await connectSocket(server.url)
    const { millraceRunId: runId } = await first.run({ messages: [user('main')] })
    await gates[0]!.reached
    await first.until(({ event }) => event.type === 'TEXT_MESSAGE_CONTENT' && event.delta.includes('w19'))
    const known = [...first.sent]
    const watchers = await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const client = await connectSocket(server.url, i % 2 === 0 ? 'websocket' : 'polling')
        const at = Math.floor((i * (known.length - 1)) / 7)
        const own = `own-${i}`
        await client.run({ threadId: own, runId: own, messages: [user('own')] })
        expect(await client.send('watch_run', { runId, after: known[at]!.with, protocolVersion: '1.0' })).toMatchObject(
          {
            ok: true,
          },
        )
        return { client, at, own }
      }),
    )
    expect(server.sockets.counts()).toMatchObject({ sockets: 9, runs: 17 })
    for (const { client, own } of watchers.slice(0, 4)) {
      await client.send('abort_run', { runId: own })
      // Before the model goes on: the run might end first.
      await client.ended(own)
    }
    for (const gate of gates) gate.open()
    const whole = await first.ended('r')
    await judged(whole)
    for (const [i, { client, at, own }] of watchers.entries()) {
      const rest = await client.ended('r')
      expect([...bare(known.slice(0, at + 1)), ...rest]).toEqual(whole)
      const { outcome } = (await client.ended(own)).at(-1) as { outcome?: { type: string } }
      expect(outcome?.type).toBe(i < 4 ? 'cancelled' : 'success')
    }
    await expect.poll(() => server.sockets.counts()).toMatchObject({ runs: 0, starting: 0, waiting: 0 })
  })

  test('watched again on the same socket, a run is sent once: from the new position', async () => {
    const gate = latch()
    const model = createScriptedModel([[text('a', 'b'), gate, text('c'), finish()]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const client = await connectSocket(server.url)
    const { millraceRunId: runId } = await client.run({})
    const { with: after } = await client.until(({ event }) => event.type === 'TEXT_MESSAGE_END')
    for (let i = 0; i < 5; i++)
      expect(await client.send('watch_run', { runId: 'r', after, protocolVersion: '1.0' })).toMatchObject({ ok: true })
    expect(server.sockets.counts().runs).toBe(1)
    gate.open()
    const events = await client.ended('r')
    expect(textOf(events)).toBe('abc')
    await judged(events)
    // The same request again joins the run, and on this socket it has its stream.
    expect(await client.run({})).toMatchObject({ ok: true, millraceRunId: runId })
  })

  test('a position that the run does not have is refused', async () => {
    server = await startServer({ agents: { a: agent() }, scripts: { m: createScriptedModel([[text('a'), finish()]]) } })
    const client = await connectSocket(server.url)
    const { millraceRunId: runId } = await client.run({})
    await client.ended('r')
    for (const after of [-1, 1.5, '3', 99_999, { seq: 'x' }, { seq: 1, index: -1 }, [1]]) {
      expect(await client.send('watch_run', { runId, after })).toMatchObject({
        ok: false,
        error: { code: 'bad-input' },
      })
    }
    expect(await client.send('watch_run', { runId: 'run_unknown' })).toMatchObject({
      ok: false,
      error: { code: 'unknown-run' },
    })
    expect(await client.send('watch_run', {})).toMatchObject({ ok: false, error: { code: 'bad-input' } })
  })

  test('an approval that was given elsewhere: who watches again is sent what followed', async () => {
    const wipe = { description: 'Wipes', approval: true, parameters: tools.add.parameters, execute: () => 'wiped' }
    const model = createScriptedModel([
      [toolCall('c1', 'wipe'), finish('tool-calls')],
      [text('Wiped.'), finish()],
    ])
    const { z } = await import('zod')
    server = await startServer({
      agents: { a: agent('tools: [wipe]') },
      scripts: { m: model },
      tools: { wipe: { ...wipe, parameters: z.object({}) } },
    })
    const client = await connectSocket(server.url)
    const runId = String((await client.run({}))['millraceRunId'])
    const first = await client.ended('r')
    const { interrupts } = (first.at(-1) as unknown as { outcome: { interrupts: { id: string }[] } }).outcome
    const { with: after } = client.sent.at(-1)!
    expect((await server.post(`/api/runs/${runId}/requests/${interrupts[0]!.id}`, { approved: true })).status).toBe(200)
    await client.send('watch_run', { runId, after, protocolVersion: '1.0' })
    await client.until(
      ({ event }, ...rest) => rest.length === 0 && event.type === 'RUN_FINISHED' && event.outcome?.type === 'success',
    )
    await judged(bare(client.sent))
    expect(textOf(bare(client.sent))).toBe('Wiped.')
    expect(bare(client.sent).filter(isTerminal)).toHaveLength(2)
  })

  test('the server stops and starts again: clients are disconnected without an end, the pending tool is answered on a new connection, and the run goes on', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-'))
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
    const asks = createScriptedModel([[text('Which? '), toolCall('c1', 'pick'), finish('tool-calls')]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: asks }, dir, keep: true })
    const client = await connectSocket(server.url)
    const runId = String((await client.run({ tools: [pick] }))['millraceRunId'])
    await client.until(({ event }) => event.type === 'TOOL_CALL_END')
    await expect.poll(async () => (await server.store.runs.get(runId))?.status).toBe('suspended')
    const { with: after } = client.sent.at(-1)!
    const gone = new Promise((resolve) => client.socket.once('disconnect', resolve))
    await server.close()
    // Not the one after which clients do not connect again.
    expect(await gone).not.toBe('io server disconnect')
    expect(bare(client.sent).filter(isTerminal)).toEqual([])
    const thanks = createScriptedModel([[text('Thanks.'), finish()]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: thanks }, dir, keep: true })
    await server.runtime.recover()
    const later = await connectSocket(server.url)
    expect(await later.send('watch_run', { runId, after, protocolVersion: '1.0' })).toMatchObject({
      ok: true,
      runId: 'r',
    })
    expect(
      await later.send('tool_result', { messageId: 'm', toolCallId: 'c1', content: '7', role: 'tool' }),
    ).toMatchObject({ ok: true })
    const events = [...client.of('r'), ...(await later.ended('r'))]
    expect(textOf(events)).toBe('Which? Thanks.')
    await judged(events)
  })
})

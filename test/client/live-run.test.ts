/** `createLiveRun`: one run as a store, against a server on a real socket. */
import { afterEach, describe, expect, test } from 'vitest'
import { createLiveRun, MillraceClient, type LiveRun, type LiveRunState } from '../../src/client.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer | undefined
afterEach(() => server?.close())

function watch({ url }: TestServer) {
  const reads: string[] = []
  const watched = (asked: string, init?: RequestInit) => (reads.push(asked), fetch(asked, init))
  return { reads, client: new MillraceClient({ url, fetch: watched as typeof fetch }) }
}

function until(run: LiveRun, matches: (state: LiveRunState) => boolean): Promise<LiveRunState> {
  return new Promise((resolve) => {
    const leave = run.subscribe(look)
    look()
    function look(): void {
      if (!matches(run.getState())) return
      leave()
      resolve(run.getState())
    }
  })
}

describe('live run of the client', () => {
  test('steps, lines and the answer are there before the model has finished, and whole when the run has ended', async () => {
    const gate = latch()
    const m = createScriptedModel([
      [toolCall('c1', 'look', { a: 1 }), finish('tool-calls')],
      [text('Hel', 'p'), gate, text(' me'), finish()],
    ])
    const look = { parameters: { type: 'object' }, execute: () => 'seen' }
    server = await startServer({ agents: { a: agent('tools: [look]') }, scripts: { m }, tools: { look } })
    const { client, reads } = watch(server)
    const runId = await client.run({ agent: 'a', messages: 'Hi' }).id
    const run = createLiveRun({ client, runId })
    expect(run.getState()).toMatchObject({ status: 'loading', steps: [], lines: [], parts: [], error: undefined })
    const leave = run.subscribe(() => undefined)
    const early = await until(run, ({ parts }) => parts.some((part) => part.type === 'text'))
    expect(early.status).toBe('running')
    expect(early.steps.map(({ step, depth }) => [step.kind, depth])).toEqual([
      ['tool-loop', 0],
      ['model-call', 1],
      ['tool-call', 1],
      ['model-call', 1],
    ])
    expect(early.steps.at(-1)!.step.end).toBeUndefined()
    expect(run.getState()).toBe(run.getState())
    gate.open()
    const end = await until(run, ({ status }) => status === 'ended')
    expect(end.parts).toMatchObject([
      { type: 'tool', toolName: 'look', output: 'seen' },
      { type: 'text', text: 'Help', state: 'done' },
      { type: 'text', text: ' me', state: 'done' },
    ])
    expect(end.steps.every(({ step }) => step.end !== undefined)).toBe(true)
    const lines = end.lines.map(({ type, text: said }) => [type, said])
    expect(lines).toContainEqual(['text-delta', 'Help'])
    expect(lines).toContainEqual(['tool-result', 'look seen'])
    expect(lines.at(-1)).toEqual(['run-end', 'completed'])
    expect(end.lines.map(({ seq }) => seq)).toEqual(end.lines.map(({ seq }) => seq).toSorted((a, b) => a - b))
    leave()
    // A run that has ended is not asked for again, however many look at it.
    await until(run, ({ status }) => status === 'ended')
    expect(reads.filter((url) => url.includes('/events'))).toHaveLength(1)
  })

  test('a run that is left is read on from there; one that is not there says so', async () => {
    const gate = latch()
    server = await startServer({
      agents: { a: `onDisconnect: detach\n${agent()}` },
      scripts: { m: createScriptedModel([[text('Hel'), gate, text('lo'), finish()]]) },
    })
    const { client, reads } = watch(server)
    const runId = await client.run({ agent: 'a', messages: 'Hi' }).id
    const run = createLiveRun({ client, runId })
    const { lines } = await until(run, ({ parts }) => parts.some((part) => part.type === 'text' && part.text === 'Hel'))
    gate.open()
    const end = await until(run, ({ status }) => status === 'ended')
    expect(end.parts).toMatchObject([{ text: 'Hel' }, { text: 'lo' }])
    expect(end.lines.slice(0, lines.length - 1)).toMatchObject(
      lines.slice(0, -1).map(({ seq, type }) => ({ seq, type })),
    )
    const after = reads.filter((url) => url.includes('/events')).map((url) => new URL(url).searchParams.get('after'))
    expect(after[0]).toBe('0')
    expect(Number(after[1])).toBeGreaterThan(0)
    const gone = createLiveRun({ client, runId: 'run_none' })
    expect((await until(gone, ({ status }) => status === 'failed')).error).toMatchObject({ code: 'unknown-run' })
  })
})

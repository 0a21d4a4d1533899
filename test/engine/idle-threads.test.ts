/** Threads in which nothing happens any more are closed: nobody waits for an answer that will not come. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  finish,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { agent, createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'

const day = 24 * 3_600_000
const realNow = Date.now.bind(Date)
let offset = 0
beforeEach(() => {
  offset = 0
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + offset)
})

const engines: Engine[] = []
afterEach(async () => {
  for (const engine of engines.splice(0).toReversed()) await engine.close()
  vi.restoreAllMocks()
})

const here: ToolImplementation = { description: 'runs in the client', parameters: z.object({}) }
const asks = [toolCall('c', 'here'), finish('tool-calls')]
const says = [text('Gone on.'), finish()]

function open({ script = [asks, says], ...more }: Partial<EngineOptions> & { script?: ScriptStep[][] } = {}) {
  const engine = createEngine({
    agents: { a: agent('tools: [here]', 'history: server') },
    tools: { here },
    scripts: { m: createScriptedModel(script) },
    requestDeadlineMs: 365 * day,
    closeThreadsAfterMs: 7 * day,
    ...more,
  })
  engines.push(engine)
  return engine
}

const said = (content: string) => ({ messages: [{ role: 'user' as const, content }] })

/** A thread whose run waits for its client. */
async function waiting(engine: Engine) {
  const run = await engine.runtime.start('a', said('Hi'), { threadId: 't', history: 'server' })
  expect((await run.result).outcome).toBe('suspended')
  return run
}

describe('idle threads', () => {
  test('after a restart, the suspended run of a thread that is idle for long is ended: the call unavailable, the request closed', async () => {
    const first = open({ keep: true })
    const { id } = await waiting(first)
    await first.close()
    engines.length = 0
    offset = 8 * day
    const engine = open({ dir: first.dir })
    await engine.runtime.recover()
    await until(engine.store, id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(engine.store, id)
    const reason = 'The conversation was closed: nothing happened in it for 7 days.'
    expect(only(entries, 'response')).toMatchObject([{ outcome: 'closed', reason: 'thread-closed' }])
    expect(only(entries, 'tool-result')).toMatchObject([{ toolCallId: 'c', outcome: 'unavailable' }])
    expect(only(entries, 'run-end')).toMatchObject([
      { outcome: 'aborted', error: { code: 'thread-closed', message: reason } },
    ])
  })

  test('while the server runs, too; a message opens the thread again, and the conversation goes on', async () => {
    const engine = open({ closeThreadsAfterMs: 1000 })
    await engine.runtime.recover()
    const { id } = await waiting(engine)
    offset = day
    await until(engine.store, id, ({ type }) => type === 'run-end')
    const run = await engine.runtime.start('a', said('Still there?'), { threadId: 't', history: 'server' })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Gone on.' })
    const [start] = only(await entriesOf(engine.store, run.id), 'run-start')
    expect(start!.previousRunId).toBe(id)
  })

  test('a thread in which another run is newer waits on, and so does any where threads are never closed', async () => {
    const engine = open({ script: [asks, asks, says] })
    const old = await engine.runtime.start('a', said('Hi'), { threadId: 'old', history: 'server' })
    await old.result
    const { id } = await waiting(engine)
    const lenient = open({ dir: engine.dir, keep: true, closeThreadsAfterMs: 'none' })
    offset = 6 * day
    await (
      await engine.runtime.start('a', said('Meanwhile'), { threadId: 't', keepsSuspended: true })
    ).result
    offset = 12 * day
    await lenient.runtime.recover()
    await engine.runtime.recover()
    // Newest first: when the old one is closed, the other has been looked at.
    await until(engine.store, old.id, ({ type }) => type === 'run-end')
    expect((await engine.store.runs.get(id))!.status).toBe('suspended')
  })

  test('an answer that came before counts: the run goes on', async () => {
    const engine = open({ closeThreadsAfterMs: 'none' })
    const { id } = await waiting(engine)
    const [request] = only(await entriesOf(engine.store, id), 'request')
    offset = 8 * day
    const answer = { answer: { kind: 'tool', output: 'late' }, protocol: 'api' }
    await engine.store.log.post(id, `answer:${request!.requestId}`, answer)
    const other = open({ dir: engine.dir, keep: true, script: [says] })
    await other.runtime.recover()
    await until(engine.store, id, ({ type }) => type === 'run-end')
    expect((await engine.store.runs.get(id))!.status).toBe('completed')
  })

  test('two processes that share the store close it once', async () => {
    const engine = open({ closeThreadsAfterMs: 'none' })
    const { id } = await waiting(engine)
    offset = 8 * day
    const others = [1, 2, 3].map(() => open({ dir: engine.dir, keep: true }))
    await Promise.all(others.map(({ runtime }) => runtime.recover()))
    await until(engine.store, id, ({ type }) => type === 'run-end')
    const entries = await entriesOf(engine.store, id)
    expect([only(entries, 'response').length, only(entries, 'run-end').length]).toEqual([1, 1])
  })
})

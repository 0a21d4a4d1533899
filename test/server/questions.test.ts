/** A step asks a person for a value, without a tool call: the run waits, and goes on over HTTP. */
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { EntryOf } from '../../src/part/entry.ts'
import { createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { startServer } from '../support/server.ts'
import type { ExecutionContext } from '../../src/engine/registry.ts'

const agents = { a: 'workflow:\n  - { id: book, type: book, config: {}, result: booked }\nreturn: "$booked"\n' }
const question = { reason: 'city', message: 'Which city?', schema: { type: 'string' } }

/** Asks twice; `calls` counts how often the handler begins. */
function booking() {
  const seen = { calls: 0 }
  const book = async (_: unknown, context: ExecutionContext) => {
    seen.calls++
    const city = await context.request(question)
    const day = await context.request({ message: 'Which day?' })
    return { city, day }
  }
  return { seen, book }
}

async function start(options: Omit<EngineOptions, 'agents'>) {
  const server = await startServer({ agents, ...options })
  onTestFinished(() => server.close())
  const get = async (path: string) => (await (await fetch(server.url + path)).json()) as Record<string, any>
  const answer = async (run: string, requestId: string, body: unknown) => {
    const response = await server.post(`/api/runs/${run}/requests/${requestId}`, body)
    return { status: response.status, body: (await response.json()) as Record<string, any> }
  }
  return { ...server, get, answer }
}

describe('questions', () => {
  test('the run is suspended, the route answers, the handler is called again, and the run completes', async () => {
    const { seen, book } = booking()
    const { post, get, answer, store, runtime } = await start({ steps: { book } })
    const { id } = (await (await post('/api/runs', { agentId: 'a' })).json()) as { id: string }
    const run = (await runtime.open(id))!
    await run.result
    const shown = await get(`/api/runs/${id}`)
    expect(shown).toMatchObject({ status: 'suspended', requests: [{ kind: 'input', ...question }] })
    expect(shown['requests'][0]).not.toHaveProperty('toolCallId')
    const { requestId } = shown['requests'][0]

    expect(await answer(id, requestId, { output: 'Rome' })).toMatchObject({ status: 400 })
    const misfit = await answer(id, requestId, { value: 7 })
    expect([misfit.status, misfit.body['error'].message]).toEqual([400, expect.stringContaining('does not fit')])
    expect(await answer(id, requestId, { value: 'Rome' })).toMatchObject({ status: 200, body: { duplicate: false } })
    expect(await answer(id, requestId, { value: 'Rome' })).toMatchObject({ status: 200, body: { duplicate: true } })
    expect(await answer(id, requestId, { value: 'Oslo' })).toMatchObject({ status: 409 })

    const second = (await until(
      store,
      id,
      (e) => e.type === 'request' && e.requestId !== requestId,
    )) as EntryOf<'request'>
    await until(store, id, (e) => e.type === 'suspend' && e.seq > second.seq)
    expect(await answer(id, second.requestId, { cancelled: true })).toMatchObject({ status: 200 })
    await until(store, id, ({ type }) => type === 'run-end')
    expect(await get(`/api/runs/${id}`)).toMatchObject({
      status: 'completed',
      requests: [],
      output: { city: { outcome: 'answered', value: 'Rome' }, day: { outcome: 'cancelled' } },
    })
    expect(seen.calls).toBe(3)
    const entries = await entriesOf(store, id)
    expect(only(entries, 'request')).toHaveLength(2)
    expect(only(entries, 'step-start')).toHaveLength(1)
  })

  let engine: Engine | undefined
  afterEach(() => engine?.close())

  test('it waits over a restart; a handler that catches everything does not keep the run from waiting', async () => {
    const stubborn = async (_: unknown, context: ExecutionContext) => {
      const answer = await context.request(question).catch(() => 'caught')
      return { answer }
    }
    const first = createEngine({ agents, steps: { book: stubborn }, keep: true })
    const run = await first.runtime.start('a', {})
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    await first.close()
    engine = createEngine({ agents, steps: { book: stubborn }, dir: first.dir })
    await engine.runtime.recover()
    const again = (await engine.runtime.open(run.id))!
    const [request] = only(await entriesOf(engine.store, run.id), 'request')
    await again.answer(request!.requestId, { kind: 'input', value: 'Rome' })
    expect(await again.result).toMatchObject({
      outcome: 'completed',
      output: { answer: { outcome: 'answered', value: 'Rome' } },
    })
  })

  test('a run that cannot wait gets no answer at once; one that nobody answers is closed at its deadline', async () => {
    const once = async (_: unknown, context: ExecutionContext) => context.request({ timeout: 1 })
    engine = createEngine({ agents, steps: { book: once } })
    const run = await engine.runtime.start('a', {}, { handOver: true })
    expect(await run.result).toMatchObject({ outcome: 'completed', output: { outcome: 'closed' } })
    const other = await engine.runtime.start('a', {})
    await until(engine.store, other.id, ({ type }) => type === 'run-end')
    expect(await (await engine.runtime.open(other.id))!.result).toMatchObject({ output: { outcome: 'closed' } })
  })
})

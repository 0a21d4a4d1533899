/** A memory store forgets old runs: never one that somebody still has to do with. */
import { describe, expect, test } from 'vitest'
import { createRuntime } from '../../src/project/create-runtime.ts'
import type { Run, Runtime } from '../../src/runtime/runtime.ts'
import { latch } from '../../src/models/testing/scripted-model.ts'
import { createHandler } from '../../src/server/handler.ts'

const agents = {
  held: 'workflow: [{ id: wait, type: wait }, { id: say, type: output-generator, config: { template: "$input.word" } }]',
  short: 'workflow: [{ id: say, type: output-generator, config: { template: done } }]',
  words: 'workflow: [{ id: say, type: words }]',
}

function runtimeOf(gate = latch()): Runtime {
  const wait = async () => (await gate.opened, null)
  const words = async function* () {
    yield 'a few '
    yield 'words'
  }
  return createRuntime({ agents, steps: { wait, words: async () => words() } })
}

async function endOthers(runtime: Runtime, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await (await runtime.start('short', {})).result
}

async function read(run: Run): Promise<string[]> {
  const types = []
  for await (const { type } of run.parts) types.push(type)
  return types
}

describe('forgetting ended runs', () => {
  test('however many runs end together, each has its result', async () => {
    const gate = latch()
    const runtime = runtimeOf(gate)
    const runs = await Promise.all(Array.from({ length: 250 }, (_, i) => runtime.start('held', { word: `w${i}` })))
    gate.open()
    for (const [i, run] of runs.entries()) {
      expect(await run.result).toMatchObject({ outcome: 'completed', output: `w${i}` })
    }
    // They go with the runs behind them: what is kept is bounded.
    await endOthers(runtime, 100)
    expect(await runtime.store.runs.list({ limit: 1000 })).toHaveLength(100)
    await runtime.close()
  })

  test('who holds a run reads its parts and its result, whatever has ended since', async () => {
    const runtime = runtimeOf()
    const run = await runtime.start('short', {})
    await run.result
    const again = (await runtime.open(run.id))!
    await endOthers(runtime, 150)
    expect(await runtime.store.runs.get(run.id)).toBeUndefined()
    expect(await again.result).toMatchObject({ outcome: 'completed', output: 'done' })
    expect([(await read(run)).at(-1), (await read(again)).at(-1)]).toEqual(['run-end', 'run-end'])
    await runtime.close()
  })

  test('a client that has its answer before it, or follows the log, gets its end', async () => {
    const runtime = runtimeOf()
    const handler = createHandler({ runtime, authorize: () => true })
    const body = JSON.stringify({ agentId: 'words', messages: [{ role: 'user', content: 'Hi' }] })
    const headers = { 'content-type': 'application/json', accept: 'text/plain' }
    const answer = await handler(new Request('http://localhost/api/chat', { method: 'POST', body, headers }))
    const run = answer.headers.get('x-millrace-run-id')
    const log = await handler(new Request(`http://localhost/api/runs/${run}/events?follow=1`))
    await endOthers(runtime, 150)
    expect(await runtime.store.runs.get(run!)).toBeUndefined()
    expect(await answer.text()).toBe('a few words')
    expect(await log.text()).toContain('"type":"run-end"')
    await runtime.close()
  })
})

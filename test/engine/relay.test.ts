/** A step whose answer comes from several sources: a relay, from the step to the reader of the run. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createRelay } from '../../src/relay/relay.ts'
import type { PrimitiveHandler } from '../../src/engine/registry.ts'
import { latch } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, type Engine } from '../support/engine.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

function createEssay(steps: PrimitiveHandler): Engine {
  const essay = 'workflow: [{ id: essay, type: essay, config: {} }]'
  return (engine = createEngine({ agents: { essay }, steps: { essay: steps } }))
}

describe('relay of branches', () => {
  test('a custom step gives a relay as its answer: its phases are one text, in order, each given what the last returned', async () => {
    const { runtime, store } = createEssay(async () => {
      const { sequence, chain, end, fail } = createRelay<string | Uint8Array>()
      async function* draft(): AsyncGenerator<string, number> {
        yield 'A draft. '
        return 2
      }
      async function produce(): Promise<void> {
        const { value } = await chain(draft())
        await chain(new Response(`From ${value} sources. `).body!)
        await chain(['The end.'])
        end()
      }
      produce().catch(fail)
      return sequence
    })
    const run = await runtime.start('essay', {})
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'A draft. From 2 sources. The end.' })
    const deltas = only(await entriesOf(store, run.id), 'text-delta').map(({ delta }) => delta)
    expect(deltas).toEqual(['A draft. ', 'From 2 sources. ', 'The end.'])
  })

  test('a stop leaves the relay: the source that is silent and the one behind it are closed at once', async () => {
    const reached = latch()
    const closed: string[] = []
    const silent = (name: string): ReadableStream<string> =>
      new ReadableStream<string>({ pull: reached.arrive, cancel: () => void closed.push(name) }, { highWaterMark: 0 })
    const relay = createRelay<string>()
    const { runtime } = createEssay(async () => {
      void relay.chain(['Begun'])
      void relay.chain(silent('current'))
      void relay.chain(silent('queued'))
      return relay.sequence
    })
    const run = await runtime.start('essay', {})
    await reached.reached
    await run.stop()
    await vi.waitFor(() => expect(closed).toEqual(['current', 'queued']))
    expect(relay.signal.aborted).toBe(true)
    expect(await run.result).toMatchObject({ outcome: 'aborted', text: 'Begun' })
  })

  test('a producer that fails ends the run as failed, behind what was said', async () => {
    const { runtime } = createEssay(async () => {
      const { sequence, chain, fail } = createRelay<string>()
      void chain(['Half of it'])
      fail(new Error('no more'))
      return sequence
    })
    const run = await runtime.start('essay', {})
    expect(await run.result).toMatchObject({ outcome: 'failed', text: 'Half of it' })
  })
})

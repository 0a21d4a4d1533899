/** Readers of one run that keep up share what a stateless wire makes of a batch. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { buildRun, startPart } from '../../test/build-run.ts'
import { noUsage } from '../part/usage.ts'
import { memoryStore } from '../store/memory-store.ts'
import { sqliteStore } from '../store/sqlite/store.ts'
import { ndjson } from '../wire/framing/text-frames.ts'
import { createWire } from '../wire/wire.ts'
import { type DeliveryContext, openDelivery } from './open-delivery.ts'
import { nextPiece } from './streamed-body.ts'

const deltas = ['one ', 'two ', 'three ', 'four ']
const entries = buildRun([
  { step: '', part: startPart },
  { step: 'main/a', part: { type: 'text-start', id: '1' } },
  ...deltas.map((delta) => ({ step: 'main/a', part: { type: 'text-delta' as const, id: '1', delta } })),
  { step: '', part: { type: 'run-end', outcome: 'completed', usage: noUsage } },
])

/** A wire that counts what it encodes. */
function countingWire(isStateless: boolean) {
  const applied: number[] = []
  const wire = createWire<{ seq: number }, { mark: string }>({
    name: 'counting',
    framing: ndjson(),
    ...(isStateless && { isStateless }),
    project(sink, _, { mark }) {
      const projection = {
        state: 'open' as 'open' | 'complete',
        apply({ seq, type }: { seq: number; type: string }) {
          applied.push(seq)
          if (type === 'run-end') projection.state = 'complete'
          sink.send({ seq, ...(mark !== undefined && { mark }) })
        },
        fail: () => undefined,
      }
      return projection
    },
  })
  return { wire, applied }
}

/** Three readers follow the run live, one of them with other options; gives their text and how often each entry was encoded. */
async function follow(isStateless: boolean, store: ReturnType<typeof memoryStore>) {
  onTestFinished(() => store.close())
  const { wire, applied } = countingWire(isStateless)
  const runtime = { store, onLost: () => () => undefined }
  const context = { runtime, keepAliveMs: 0, onError: expect.unreachable } as unknown as DeliveryContext
  const [start, ...rest] = entries
  const runId = start!.type === 'run-start' ? start!.runId : expect.unreachable()
  await store.log.append(runId, 1, [start!])
  const open = (options: { mark?: string }) => openDelivery(context, { runId, wire, options, from: 1 })
  const readers = await Promise.all([open({}), open({}), open({ mark: 'm' })])
  const texts = readers.map(() => '')
  /** Each reader's next piece. */
  const next = () =>
    Promise.all(readers.map(async ({ source }, i) => void (texts[i] += (await nextPiece(source)) ?? '')))
  await next()
  for (const entry of rest) {
    const pieces = next()
    await store.log.append(runId, 1, [entry])
    await pieces
  }
  return { texts, times: entries.map(({ seq }) => applied.filter((each) => each === seq).length) }
}

const stores = { memory: () => memoryStore(), SQLite: () => sqliteStore(':memory:') }

describe('shared encoded pieces', () => {
  test.each(Object.entries(stores))('%s: an entry is encoded once for each set of options', async (_, createStore) => {
    const { texts, times } = await follow(true, createStore())
    const lines = entries.map(({ seq }) => `{"seq":${seq}}\n`).join('')
    const marked = entries.map(({ seq }) => `{"seq":${seq},"mark":"m"}\n`).join('')
    expect(texts).toEqual([lines, lines, marked])
    // What was stored before they came each of them may read for itself, and the end of the run changes each encoder.
    expect(times.slice(1)).toEqual(entries.slice(1).map(({ type }) => (type === 'run-end' ? 3 : 2)))
  })

  test('a wire that remembers what it has sent encodes for each reader', async () => {
    const { texts, times } = await follow(false, memoryStore())
    expect(texts[0]).toBe(texts[1])
    expect(times).toEqual(entries.map(() => 3))
  })
})

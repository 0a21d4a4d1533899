/** The view of a long run is read and sent in slices: other work runs between them. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../handler.ts'
import type { Entry } from '../../part/entry.ts'
import { agent, createEngine } from '../../../test/support/engine.ts'
import { slicedJson } from './sliced-json.ts'

test('the JSON is that of JSON.stringify', async () => {
  const list = Array.from({ length: 1001 }, (_, i) => (i % 7 === 3 ? undefined : { i, text: `"${i}"` }))
  for (const value of [{}, { a: 1, b: undefined }, { list }, { b: undefined, list, c: [1], other: list, d: '"' }]) {
    expect(await slicedJson(value).text()).toBe(JSON.stringify(value))
  }
})

test('GET of a run of thousands of steps lets others run while its log is read and while it is sent', async () => {
  const engine = createEngine({ agents: { a: agent() } })
  onTestFinished(() => engine.close())
  const handler = createHandler({ runtime: engine.runtime, authorize: () => true })
  const seen = []
  for (const steps of [2, 2000, 4000]) {
    const id = `run_${steps}`
    const entries = longRun(id, steps)
    for (let at = 0; at < entries.length; at += 500) await engine.store.log.append(id, 1, entries.slice(at, at + 500))
    let turns = 0
    let isOn = true
    const others = (async () => {
      for (; isOn; turns++) await turn()
    })()
    const response = await handler(new Request(`http://x/api/runs/${id}`))
    const whileRead = turns
    const { body } = response
    let longest = 0
    const pieces: Uint8Array[] = []
    for (const reader = body!.getReader(); ;) {
      const { done, value } = await reader.read()
      if (done) break
      pieces.push(value)
      longest = Math.max(longest, value.length)
    }
    isOn = false
    await others
    const view = JSON.parse(Buffer.concat(pieces).toString()) as { steps: unknown[]; id: string }
    expect(view.steps).toHaveLength(steps + 1)
    seen.push({ whileRead, whileSent: turns - whileRead, longest })
  }
  const [, some, many] = seen
  // A turn for each page of the log, and one for each slice of the answer.
  expect(many!.whileRead).toBeGreaterThan(some!.whileRead)
  expect(some!.whileRead).toBeGreaterThan(seen[0]!.whileRead)
  expect(many!.whileSent).toBeGreaterThanOrEqual(4000 / 250)
  expect(many!.longest).toBe(some!.longest)
})

function longRun(runId: string, steps: number): Entry[] {
  const run = { runId, agent: 'a', threadId: runId, protocol: 'api', pipeline: '', input: {} }
  const entries: object[] = [{ step: '', type: 'run-start', ...run }]
  const start = (step: string, kind: string) =>
    entries.push({ step, type: 'step-start', stepType: kind, kind, attempt: 1 })
  start('main/a', 'tool-loop')
  for (let i = 1; i <= steps; i++) {
    start(`main/a/${10_000 + i}`, 'tool-call')
    entries.push({ step: `main/a/${10_000 + i}`, type: 'step-finish', duration: 1 })
  }
  entries.push({ step: 'main/a', type: 'step-finish', duration: 1 })
  entries.push({ step: '', type: 'run-end', outcome: 'completed', usage: {} })
  return entries.map((entry, i) => ({ seq: i + 1, timestamp: 1000 + i, ...entry })) as Entry[]
}

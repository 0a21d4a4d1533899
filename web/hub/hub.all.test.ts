/** The hub with tabs that are functions, and a real server: one connection, and each tab gets exactly what it follows. */
import { expect, test } from 'vitest'
import { open } from './testing/hub-scene.ts'

test('a slow tab keeps nobody waiting, costs a bounded amount, and gets all of it', async () => {
  const { first, openTab, follow } = await open({})
  const gate = Promise.withResolvers<void>()
  const [slow, fast] = [openTab({ acks: () => gate.promise }), openTab()]
  const entry = {
    seq: 1,
    timestamp: 0,
    step: '',
    runId: 'r',
    agent: 'a',
    pipeline: '',
    threadId: 't',
    protocol: 'api',
    input: {},
  }
  await first.store.log.append('r', 1, [{ ...entry, type: 'run-start' }])
  const both = [follow(slow.tab, 'r'), follow(fast.tab, 'r')]
  await both[1]!.until(() => true)
  const data = 'x'.repeat(200_000)
  for (let seq = 2; seq <= 101; seq++) {
    await first.store.log.append('r', 1, [{ seq, timestamp: 0, step: '', type: 'data', name: 'd', data }])
  }
  await both[1]!.until(({ seq }) => seq === 101)
  expect(both[0]!.entries).toEqual([])
  gate.resolve()
  await both[0]!.until(({ seq }) => seq === 101)
  for (const { entries } of both)
    expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: 101 }, (_, i) => i + 1))
  const sizes = slow.batches.map(({ entries }) => JSON.stringify(entries).length)
  expect(Math.max(...sizes)).toBeLessThan(16 * 1024 * 1024)
})

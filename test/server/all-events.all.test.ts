/** `GET /api/events`: what happens in all runs, as it happens, for monitors. */
import { get, type IncomingMessage } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { Change, Store } from '../../src/part/log.ts'
import { start } from './all-events-readers.ts'

describe('events of all runs', () => {
  test('a monitor that does not read costs what its socket holds, whatever 1000 runs say; then it gets all of it', async () => {
    let pulled = 0
    const count = (store: Store): Store => ({
      ...store,
      log: {
        ...store.log,
        async *changes(options) {
          for await (const changes of store.log.changes(options) as AsyncIterable<Change[]>) {
            pulled += changes.length
            yield changes
          }
        },
      },
    })
    const { url, store } = await start({ wrapStore: count })
    const response = await new Promise<IncomingMessage>((resolve) => get(`${url}/api/events?after=0`, resolve))
    onTestFinished(() => void response.destroy())
    const input = { text: 'x'.repeat(30_000) }
    const run = (id: string): Entry => {
      const start = { agent: 'a', pipeline: '', threadId: id, protocol: 'api', input }
      return { seq: 1, timestamp: 0, step: '', type: 'run-start', runId: id, ...start }
    }
    await Promise.all(Array.from({ length: 1000 }, (_, i) => store.log.append(`run_${i}`, 1, [run(`run_${i}`)])))
    // What is read without the client is read in a few turns, and of a store elsewhere in a few looks.
    for (let known = -1; pulled === 0 || known !== pulled;) {
      known = pulled
      for (let looks = 0; looks < 10; looks++) await store.log.position()
      for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(pulled).toBeGreaterThan(10)
    expect(pulled).toBeLessThan(700)
    const runs = new Set<string>()
    let rest = ''
    for await (const bytes of response.setEncoding('utf8')) {
      const frames = (rest + (bytes as string)).split('\n\n')
      rest = frames.pop()!
      for (const frame of frames) {
        const [, run] = /^data: \{"run":"(\w+)"/mu.exec(frame) ?? []
        if (run !== undefined) runs.add(run)
      }
      if (runs.size === 1000) break
    }
    expect(pulled).toBe(1000)
  })
})

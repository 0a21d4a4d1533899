/** `GET /api/live`: rows of runs, entries of some runs and reloads of agents over one connection. */
import { get, type IncomingMessage } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { start, toFrame } from './live-readers.ts'

describe('live lists', () => {
  test('a reader that does not read costs what its socket holds; then it gets all of it', async () => {
    let pulled = 0
    const count = (store: Store): Store => ({
      ...store,
      log: {
        ...store.log,
        async *read(run, options) {
          for await (const batch of store.log.read(run, options) as AsyncIterable<Entry[]>) {
            pulled += batch.length
            yield batch
          }
        },
      },
    })
    const { url, store } = await start({ wrapStore: count })
    const startEntry: Entry = {
      seq: 1,
      timestamp: 0,
      step: '',
      type: 'run-start',
      runId: 'r',
      agent: 'a',
      pipeline: '',
      threadId: 't',
      protocol: 'api',
      input: {},
    }
    await store.log.append('r', 1, [startEntry])
    const response = await new Promise<IncomingMessage>((resolve) => get(`${url}/api/live?runs=r~0&rows=1`, resolve))
    onTestFinished(() => void response.destroy())
    const data = 'x'.repeat(30_000)
    for (let seq = 2; seq <= 1000; seq++) {
      await store.log.append('r', 1, [{ seq, timestamp: 0, step: '', type: 'data', name: 'd', data }])
    }
    for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
    expect(pulled).toBeLessThan(700)
    const seqs: number[] = []
    let rest = ''
    for await (const bytes of response.setEncoding('utf8')) {
      const frames = (rest + (bytes as string)).split('\n\n')
      rest = frames.pop()!
      for (const frame of frames.flatMap(toFrame)) if (frame.event === 'entry') seqs.push(frame.data.entry.seq)
      if (seqs.at(-1) === 1000) break
    }
    expect(seqs).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1))
  })
})

/** A run of very many deltas: what it holds in memory, and what a client that comes late makes the server read. */
import { setFlagsFromString } from 'node:v8'
import { afterEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { startEntry } from '../../src/store/example-run.contract.ts'
import { agent } from '../support/engine.ts'
import { readBody, startServer, type TestServer } from '../support/server.ts'

setFlagsFromString('--expose-gc')

let server: TestServer
afterEach(() => server.close())

/** Entries that readers were given. */
let given = 0

function counting(store: Store): Store {
  const read: Store['log']['read'] = (run, options) => {
    const inner = store.log.read(run, options)
    return {
      [Symbol.asyncIterator]() {
        const iterator = inner[Symbol.asyncIterator]()
        return {
          async next() {
            const batch = await iterator.next()
            given += batch.done === true ? 0 : batch.value.length
            return batch
          },
          return: (value) => iterator.return!(value),
        }
      },
    }
  }
  return { ...store, log: { ...store.log, read } }
}

const deltas = 50_000
/** A page has 256 KB of text: about two thousand deltas. A client may be a few pages ahead of what was read from its socket. */
const somePages = 15_000

/** Stores a run that is still speaking. */
async function store(run: string, threadId: string): Promise<void> {
  const start = { ...startEntry(run), threadId, protocol: 'api', agent: 'a', input: { messages: [] } } as Entry
  const step = (seq: number, path: string, more: object) =>
    ({ seq, timestamp: 1, step: path, type: 'step-start', attempt: 1, ...more }) as Entry
  const head = [
    start,
    step(2, 'main/answer', { stepType: 'llm', kind: 'container', answer: true }),
    step(3, 'main/answer/1', { stepType: 'model-call', kind: 'model-call' }),
    { seq: 4, timestamp: 1, step: 'main/answer/1', type: 'text-start', id: 't' } as Entry,
  ]
  await server.store.log.append(run, 1, head)
  for (let seq = 5; seq <= deltas; seq += 100) {
    const some = Array.from({ length: 100 }, (_, i): Entry => {
      return { seq: seq + i, timestamp: 1, step: 'main/answer/1', type: 'text-delta', id: 't', delta: ` ${seq + i}` }
    })
    await server.store.log.append(run, 1, some)
  }
}

describe('long runs', () => {
  test.each([
    ['a chat that is joined', '/api/chat/t/stream', '" 5'],
    ['a log that is read from its start', '/api/runs/r/events', '"delta":" 5"'],
    [
      'a log that is gone on with in its middle',
      `/api/runs/r/events?after=${deltas / 2}`,
      `"delta":" ${deltas / 2 + 1}"`,
    ],
  ])('%s sends its first frames before the log is read', async (_, path, first) => {
    server = await startServer({ agents: { a: agent() }, wrapStore: counting })
    await store('r', 't')
    given = 0
    const response = await fetch(server.url + path, { headers: { accept: 'text/event-stream' } })
    expect(response.status).toBe(200)
    const body = readBody(response)
    await body.until(first)
    expect(given).toBeLessThan(somePages)
    await body.leave()
  })
})

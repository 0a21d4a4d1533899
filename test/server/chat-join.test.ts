/** Clients that come later to an answer: what they get, and how often the log is read for it. */
import { afterEach, describe, expect, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import type { Store } from '../../src/part/log.ts'
import { agent } from '../support/engine.ts'
import { framesOf, readBody, startServer, type TestServer } from '../support/server.ts'

let server: TestServer
describe('chat: joining', () => {
  afterEach(() => server.close())

  test('a client that joins reads the log once before its replay, and one that starts not at all', async () => {
    const hold = latch()
    let reads = 0
    const counting = (store: Store): Store => {
      const read: Store['log']['read'] = (...asked) => {
        const entries = store.log.read(...asked)
        // One entry is no log.
        if (asked[1]?.limit === 1) return entries
        return { [Symbol.asyncIterator]: () => (reads++, entries[Symbol.asyncIterator]()) }
      }
      return { ...store, log: { ...store.log, read } }
    }
    const script = createScriptedModel([[text('Hello'), hold, text(' there.'), finish()]])
    server = await startServer({ agents: { a: agent() }, scripts: { m: script }, wrapStore: counting })
    const body = {
      agentId: 'a',
      id: 'c',
      messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
    }
    const counted = async (ask: () => Promise<Response>) => {
      reads = 0
      const answer = readBody(await ask())
      await answer.until('Hello')
      return { answer, count: reads }
    }
    const first = await counted(() => server.post('/api/chat', body))
    expect(first.count).toBe(1)
    const joined = await counted(() => server.post('/api/chat', body))
    expect(joined.count).toBe(2)
    const reloaded = await counted(() => fetch(`${server.url}/api/chat/c/stream`))
    expect(reloaded.count).toBe(2)
    hold.open()
    const texts = await Promise.all([first, joined, reloaded].map(async ({ answer }) => saidIn(await answer.rest())))
    expect(texts).toEqual(['Hello there.', 'Hello there.', 'Hello there.'])
  })
})

function saidIn(body: string): string {
  return framesOf(body)
    .flatMap((frame) => (frame !== 'done' && frame['type'] === 'text-delta' ? [frame['delta']] : []))
    .join('')
}

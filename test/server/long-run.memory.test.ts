/** A run of very many deltas: what it holds in memory, and what a client that comes late makes the server read. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { afterEach, describe, expect, test } from 'vitest'
import { agent, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

let server: TestServer
afterEach(() => server.close())

/** Says so many deltas, and waits where it is asked to. */
function createLongModel(count: number, pauses: Record<number, () => Promise<void>>): LanguageModelV4 {
  async function* parts(): AsyncGenerator<LanguageModelV4StreamPart> {
    yield { type: 'text-start', id: 't' }
    for (let i = 0; i < count; i++) {
      yield { type: 'text-delta', id: 't', delta: `${i} word `.slice(0) }
      await pauses[i + 1]?.()
      // As a socket does: what comes in one turn of the event loop is one batch.
      if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    yield { type: 'text-end', id: 't' }
    const inputTokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }
    const usage = { inputTokens, outputTokens: { total: count, text: count, reasoning: 0 } }
    yield { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage }
  }
  return {
    specificationVersion: 'v4',
    provider: 'long',
    modelId: 'long',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('streams only')),
    doStream: async () => ({ stream: streamOf(parts()) }),
  }
}

function streamOf<T>(parts: AsyncGenerator<T>): ReadableStream<T> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await parts.next()
      if (done === true) controller.close()
      else controller.enqueue(value)
    },
  })
}

describe('long runs', () => {
  test('a run holds its text in memory, and nothing else for each of its deltas', async () => {
    const [early, late] = [20_000, 100_000]
    const heaps: number[] = []
    let seen = 0
    const arrived: Record<number, PromiseWithResolvers<void>> = {
      [early]: Promise.withResolvers(),
      [late]: Promise.withResolvers(),
    }
    const measure = (count: number) => async () => {
      await arrived[count]!.promise
      collectGarbage()
      heaps.push(process.memoryUsage().heapUsed)
    }
    const model = createLongModel(late, { [early]: measure(early), [late]: measure(late) })
    server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
    const response = await server.post('/api/chat', {
      agentId: 'a',
      id: 't',
      messages: [{ role: 'user', content: 'Hi' }],
    })
    const run = response.headers.get('x-millrace-run-id')!
    const words = new TextDecoder()
    for await (const piece of response.body!) {
      seen += words.decode(piece).split('word ').length - 1
      // A few may still be on their way, or cut in two.
      for (const [count, { resolve }] of Object.entries(arrived)) if (seen > Number(count) * 0.99) resolve()
    }
    await until(server.store, run, ({ type }) => type === 'run-end')
    const perDelta = (heaps[1]! - heaps[0]!) / (late - early)
    // An entry alone has more than a hundred bytes.
    expect(perDelta).toBeLessThan(40)
  })
})

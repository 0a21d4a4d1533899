/** One bad import does not take the instance out, and imports have their number. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { endEntry, startEntry } from '../../src/store/example-run.contract.ts'
import { createEngine } from '../support/engine.ts'

const origin = 'http://127.0.0.1'
const type = { 'content-type': 'application/x-ndjson' }
const lines = (id: string, more: object = {}) =>
  [{ ...startEntry(id), ...more }, endEntry(2)].map((entry) => `${JSON.stringify(entry)}\n`).join('')

function served() {
  const engine = createEngine({ agents: {} })
  onTestFinished(() => engine.close())
  const handler = createHandler({ runtime: engine.runtime, authorize: () => true })
  const post = (body: BodyInit) =>
    handler(
      new Request(`${origin}/api/runs/import`, { method: 'POST', headers: type, body, duplex: 'half' } as RequestInit),
    )
  return { handler, post, status: async (path: string) => (await handler(new Request(origin + path))).status }
}

describe('import limits', () => {
  test.each([{ agent: 5 }, { threadId: {} }, { runId: null }, { protocol: {} }, { input: 'x' }, { labels: { a: 1 } }])(
    'after %j was refused as the client’s mistake, everything goes on',
    async (wrong) => {
      const { post, status } = served()
      const refused = await post(lines('bad', wrong))
      const { error } = (await refused.json()) as { error: { code: string; message: string } }
      expect([refused.status, error.code]).toEqual([400, 'invalid-recording'])
      expect(error.message).toContain(`line 1: ${Object.keys(wrong)[0]}`)
      expect((await post(lines('good'))).status).toBe(201)
      for (const path of ['/metrics', '/health', '/api/runs', '/api/threads', '/api/stats']) {
        expect([path, await status(path)]).toEqual([path, 200])
      }
    },
  )

  test('a third import waits for its turn: 429, until one of the two is over, whatever came of it', async () => {
    const { post } = served()
    const bodies = ['a', 'b'].map(() => Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>())
    const open = bodies.map(({ resolve }) => post(new ReadableStream({ start: resolve })))
    const [first, second] = await Promise.all(bodies.map(({ promise }) => promise))
    const refused = await post(lines('c'))
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5'])
    expect(await refused.json()).toMatchObject({ error: { code: 'too-many-imports' } })
    first!.enqueue(new TextEncoder().encode('nothing\n'))
    expect((await open[0]!).status).toBe(400)
    expect((await post(lines('c'))).status).toBe(201)
    second!.enqueue(new TextEncoder().encode(lines('b')))
    second!.close()
    expect((await open[1]!).status).toBe(201)
  })
})

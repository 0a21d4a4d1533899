/** Ids of runs that come from elsewhere may be any text. They are told in headers and frames, and begin no other. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => void (server = await startServer({ agents: { a: agent() } })))
afterAll(() => server.close())

const rest = ['/events', '/export', '/outline', '/replay?speed=max', '/replay?speed=max&format=ui']

describe('run ids', () => {
  test.each(['a\r\nset-cookie: x=1', 'data: x\n\nb', 'r☃', 'é', 'a/b', '50%', 'x'.repeat(3000)])('%j', async (id) => {
    const { runtime, url } = server
    await (
      await runtime.start('a', {}, { runId: id })
    ).result
    for (const path of rest) {
      const response = await fetch(`${url}/api/runs/${encodeURIComponent(id)}${path}`)
      expect([path, response.status]).toEqual([path, 200])
      expect(decodeURIComponent(response.headers.get('x-millrace-run-id')!)).toBe(id)
      expect(response.headers.has('set-cookie')).toBe(false)
      await response.text()
    }
    // An EventSource that has everything.
    const headers = { accept: 'text/event-stream', 'last-event-id': String((await server.store.runs.get(id))!.lastSeq) }
    const done = await fetch(`${url}/api/runs/${encodeURIComponent(id)}/events`, { headers })
    expect([done.status, decodeURIComponent(done.headers.get('x-millrace-run-id')!)]).toEqual([204, id])
    expect(server.reported).toEqual([])
  })
})

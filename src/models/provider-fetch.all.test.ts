import { createServer } from 'node:http'
import { once } from 'node:events'
import { type AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createProviderFetch } from './provider-fetch.ts'
import {
  providerFetch,
  fetch,
  dispatcher,
  servers,
  setDispatcher,
  serve,
  forbidFetch,
  post,
} from './testing/scripted-provider.ts'

void globalThis.Headers
describe('createProviderFetch', () => {
  afterEach(() => {
    globalThis.fetch = fetch
    setDispatcher(dispatcher)
    for (const server of servers.splice(0)) server.close().closeAllConnections()
  })

  test('after a pause longer than the default of undici, the next request takes the same connection', async () => {
    let connections = 0
    const server = createServer((_, outgoing) => outgoing.end('there'))
    // A server that names no time.
    server.keepAliveTimeout = 0
    server.on('connection', () => connections++).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await (await providerFetch(url, post)).text()
    await new Promise((resolve) => setTimeout(resolve, 5500))
    await (await providerFetch(url, post)).text()
    expect(connections).toBe(1)
  })

  test('of an answer that nobody reads no more is taken than a little', async () => {
    const piece = Buffer.alloc(1 << 20)
    let sent = 0
    const full = Promise.withResolvers<void>()
    const url = await serve((_, outgoing) => {
      const fill = () => {
        for (let more = true; more && sent < 256; sent++) more = outgoing.write(piece)
        if (sent >= 256) outgoing.end()
      }
      outgoing.on('drain', fill)
      // Both socket buffers are full if nothing drains between two timer ticks.
      let before = -1
      const timer = setInterval(() => {
        if (sent === before) full.resolve()
        before = sent
      }, 50)
      outgoing.on('close', () => clearInterval(timer))
      fill()
    })
    forbidFetch()
    const limits = { lineBytes: 512 << 20, bodyBytes: 512 << 20 }
    const { body } = await createProviderFetch({ who: 'box:tiny', limits })(url, post)
    await full.promise
    expect(sent).toBeLessThan(64)
    let bytes = 0
    for await (const each of body!) bytes += each.length
    expect(bytes).toBe(256 << 20)
  })
})

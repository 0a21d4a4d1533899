/** Readers under load: a slow one costs nothing and delays nobody; those that come and go leave nothing behind. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { folder } from '../support/cli.ts'
import { startMeasuredProcess } from '../support/measured-process.ts'
import { often } from '../support/thorough.ts'
import { requests, storm } from './resetting-clients.ts'
import { expectSize } from '../support/figure.ts'

const MB = 1024 * 1024

/** A model server that says `chunks` deltas of `size` characters as fast as it is read, then waits to be told to end. */
async function startFlood(chunks: number, size: number) {
  const delta = (content: string, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`
  const chunk = delta('x'.repeat(size - 1) + ' ')
  let flooded = Promise.withResolvers<void>()
  let end = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    request.resume()
    void (async () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let i = 0; i < chunks && !response.destroyed; i++) {
        if (!response.write(chunk)) await drained(response)
      }
      flooded.resolve()
      await end.promise
      response.end(`${delta('', 'stop')}data: [DONE]\n\n`)
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    end.resolve()
    server.closeAllConnections()
    server.close()
  })
  return {
    baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    /** Lets the answer end, and makes ready for the next one. */
    end() {
      end.resolve()
      end = Promise.withResolvers()
      flooded = Promise.withResolvers()
    },
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      response.off('drain', go).off('close', go)
      resolve()
    }
    response.on('drain', go).on('close', go)
  })
}

async function startMeasured(baseURL: string) {
  const yaml = (policy: string) => `onDisconnect: ${policy}
limits: { answerChars: 200000000 }
workflow:
  - { id: answer, type: llm, config: { model: "up:m", stream: true } }
`
  const dir = folder({ 'stays.yaml': yaml('detach'), 'goes.yaml': yaml('cancel') })
  const server = await startMeasuredProcess(dir, baseURL)
  const { url } = server
  return {
    ...server,
    activeRuns: (n: number) =>
      vi.waitFor(
        async () => {
          const { runs } = (await (await fetch(`${url}/health`)).json()) as { runs: { active: number } }
          expect(runs.active).toBe(n)
        },
        { interval: 50 },
      ),
    chat: (id: string) =>
      fetch(`${url}/api/beddel/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ agentId: 'stays', id, messages: [{ role: 'user', content: 'Hi' }] }),
      }),
  }
}

/** A client that sends a request and then reads a few bytes now and then. */
async function startSlow(url: string, path: string, accept: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  await once(socket, 'connect')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: ${accept}\r\n\r\n`)
  await once(socket, 'readable')
  expect(String(socket.read(12))).toBe('HTTP/1.1 200')
  const sips = setInterval(() => socket.read(16), 200)
  socket.on('close', () => clearInterval(sips))
  onTestFinished(() => void socket.destroy())
  return socket
}

describe('readers of a run', () => {
  test(
    'a slow reader of a 100 MB run costs the server less than 20 MB and delays nobody',
    { timeout: 180_000 },
    async () => {
      const [chunks, size] = [25_000, 4096]
      const flood = await startFlood(chunks, size)
      const server = await startMeasured(flood.baseURL)
      const total = chunks * size

      /** One run with a reader that keeps up: what the server holds once all has been said, and how long that took. */
      async function phase(name: string, join: (run: string) => Promise<unknown>) {
        const before = await server.measure()
        const began = performance.now()
        const response = await server.chat(name)
        await join(response.headers.get('x-millrace-run-id')!)
        const reader = response.body!.getReader()
        let bytes = 0
        while (bytes < total) bytes += (await reader.read()).value!.byteLength
        const took = performance.now() - began
        const after = await server.measure()
        return {
          took,
          cpu: after.cpu - before.cpu,
          heap: after.heap - before.heap,
          rss: after.rss,
          async end() {
            flood.end()
            while (!(await reader.read()).done);
            // Its text is let go a moment after its reader has been told the end.
            await server.activeRuns(0)
          },
        }
      }

      async function pair(n: number): Promise<{ rss: number }> {
        const alone = await phase(`alone${n}`, async () => undefined)
        await alone.end()
        const slow: Socket[] = []
        const beside = await phase(`beside${n}`, async (run) => {
          slow.push(await startSlow(server.url, `/api/runs/${run}/events`, 'text/event-stream'))
          slow.push(await startSlow(server.url, `/api/chat/beside${n}/stream`, 'text/event-stream'))
        })
        expectSize('heap for two slow readers', beside.heap - alone.heap, 20 * MB)
        // Work, which does not depend on what else the machine does; and time, for a reader that waited for another.
        expect(beside.cpu).toBeLessThan(alone.cpu * 1.5 + 500)
        expect(beside.took).toBeLessThan(alone.took * 4 + 4000)
        for (const socket of slow) expect(socket.bytesRead).toBeLessThan(total / 2)
        await beside.end()
        for (const socket of slow) socket.destroy()
        return { rss: beside.rss - alone.rss }
      }

      // What a first run leaves warm is no one's cost.
      await (await phase('warm', async () => undefined)).end()
      // The process may take more memory between two measurements for reasons of its own, but a reader that costs more always shows.
      let least = Infinity
      for (let n = 1; n <= 3 && least >= 20 * MB; n++) least = Math.min(least, (await pair(n)).rss)
      expectSize('process for two slow readers', least, 20 * MB)
    },
  )

  test(
    `${often(500)} connections that are reset leave memory, sockets and listeners as they were`,
    { timeout: 60_000 },
    async () => {
      const flood = await startFlood(200, 1000)
      const server = await startMeasured(flood.baseURL)
      const response = await server.chat('t')
      const reader = response.body!.getReader()
      let bytes = 0
      while (bytes < 200_000) bytes += (await reader.read()).value!.byteLength
      const all = requests(response.headers.get('x-millrace-run-id')!, 't')
      await storm(server.url, all, 100)
      await server.activeRuns(1)
      const before = await server.measure()
      await storm(server.url, all, often(500))
      await server.activeRuns(1)
      const { heap, listeners } = await vi.waitFor(
        async () => {
          const now = await server.measure()
          expect(now.resources).toBeLessThanOrEqual(before.resources)
          return now
        },
        { interval: 100 },
      )
      expectSize('heap after reset connections', heap - before.heap, 3 * MB)
      expect(listeners).toBe(before.listeners)
      // The one who stayed is served to the end.
      flood.end()
      while (!(await reader.read()).done);
    },
  )
})

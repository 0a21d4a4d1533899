/** A model server that speaks Google's protocol: it says one word, then waits until `release` is called, then says another. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface HeldModel {
  url: string
  /** How many answers wait. */
  readonly waiting: number
  release(): void
  close(): void
}

export async function startHeldModel(): Promise<HeldModel> {
  const waiting = new Set<() => void>()
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const say = (text: string, more: object = {}) => {
      const candidate = { content: { role: 'model', parts: [{ text }] }, index: 0, ...more }
      response.write(`data: ${JSON.stringify({ candidates: [candidate] })}\n\n`)
    }
    say('early ')
    waiting.add(() => {
      say('late', { finishReason: 'STOP' })
      response.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get waiting() {
      return waiting.size
    },
    release() {
      for (const go of waiting) go()
      waiting.clear()
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

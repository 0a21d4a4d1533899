/** Clients that send a request and reset the connection. */
import { once } from 'node:events'
import { connect } from 'node:net'

/** Sends a request and resets the connection: at once, or when the first bytes of the answer have come. */
async function hitAndRun(url: string, request: string, wait: boolean): Promise<void> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  await new Promise<void>((resolve) => socket.write(request, () => resolve()))
  if (wait) await once(socket, 'data')
  socket.resetAndDestroy()
}

/** A request for each way to read a run. */
export function requests(run: string, thread: string): string[] {
  const get = (path: string, accept: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: ${accept}\r\n\r\n`
  const body = JSON.stringify({ agentId: 'goes', messages: [{ role: 'user', content: 'Hi' }] })
  const head = `Host: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  return [
    get(`/api/runs/${run}/events`, 'text/event-stream'),
    get(`/api/chat/${thread}/stream`, 'text/event-stream'),
    get(`/api/runs/${run}/events?follow=1`, 'application/x-ndjson'),
    get(`/api/runs/${run}/events`, 'application/x-ndjson'),
    `POST /api/chat HTTP/1.1\r\n${head}\r\n\r\n${body}`,
  ]
}

/** Sends them in turn, 20 at once. */
export async function storm(url: string, all: readonly string[], times: number): Promise<void> {
  for (let i = 0; i < times; i += 20) {
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => hitAndRun(url, all[n % all.length]!, (n + i / 20) % 2 === 0)),
    )
  }
}

/** What a client receives is what `socket.emit` would send, over both transports and while one becomes the other. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server, type Socket } from 'socket.io'
import { io } from 'socket.io-client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { emitEvents, type SentEvent } from './followed-run.ts'

type Pair = [object, object]

/** A server that calls this with its socket, and a client; resolves with what the client has received up to the event `end`. */
async function received(transports: string[], send: (socket: Socket) => void): Promise<Pair[]> {
  const http = createServer()
  const server = new Server(http, { serveClient: false })
  await new Promise<void>((done) => http.listen(0, '127.0.0.1', done))
  const client = io(`http://127.0.0.1:${(http.address() as AddressInfo).port}`, { transports, reconnection: false })
  onTestFinished(async () => {
    client.close()
    await server.close()
  })
  const pairs: Pair[] = []
  client.on('event', (...pair: Pair) => void pairs.push(pair))
  server.on('connection', send)
  return new Promise((done) => client.on('end', () => done(pairs)))
}

const texts = ['', 'plain', '👋🏽 "quoted" \n \u001e \u2028 \ud800', 'x'.repeat(60), 'y'.repeat(130), 'ü'.repeat(40_000)]
const first = { runId: 'r', threadId: '"' }
const second = { runId: 'r2', threadId: 't' }
/** Around the sizes at which a frame gets another head. */
const ascii = [124, 125, 126, 127, 128, 65_534, 65_535, 65_536, 65_537].map((size) => {
  const rest = { of: size % 3 === 0 ? first : second, seq: 7 }
  const { event, of, seq } = eventOf('', rest)
  return eventOf('z'.repeat(size - `42${JSON.stringify(['event', event, { ...of, seq }])}`.length), rest)
})
const mixed = texts.map((delta, i) => eventOf(delta, { of: second, seq: 99, index: i + 1 }))
const asJson = [...ascii, ...mixed].map(({ event, of, ...at }) => JSON.parse(JSON.stringify([event, { ...of, ...at }])))

function eventOf(delta: string, rest: Omit<SentEvent, 'event'>): SentEvent {
  return { event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta, subagentRunId: undefined }, ...rest }
}

describe('Socket.IO events', () => {
  test.each([[['websocket']], [['polling']], [['polling', 'websocket']]])('%s', async (transports) => {
    const got = await received(transports, (socket) => {
      emitEvents(socket, [])
      emitEvents(socket, ascii)
      emitEvents(socket, mixed)
      for (const each of [...ascii, ...mixed]) emitEvents(socket, [each])
      socket.emit('event', ...asJson[1])
      const finish = () => {
        emitEvents(socket, [...ascii, ...mixed])
        socket.emit('end')
      }
      // The rest comes over the other transport.
      if (transports.length === 1) finish()
      else socket.conn.once('upgrade', finish)
    })
    expect(got).toEqual([...asJson, ...asJson, asJson[1], ...asJson])
  })
})

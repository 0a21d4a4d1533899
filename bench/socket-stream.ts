/**
 * The load generator's Socket.IO client, over WebSocket, with minimal parsing like its HTTP client. A connection serves one run after
 * the other, as a page's does.
 */
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import type { Opened } from './http-stream.ts'

interface Connection {
  /** What is being read. */
  reading: Reading | undefined
  send(packet: string): void
  close(): void
}

interface Reading {
  onPayload(payload: Buffer): void
  done: PromiseWithResolvers<void>
}

/** Connections on which no run is streamed, by server. */
const idle = new Map<string, Connection[]>()

/** Emits `message` and passes on what comes, without the framing, until the run's last event. */
export async function openSocketRun(
  { url, message }: { url: string; message: string },
  onPayload: (payload: Buffer) => void,
): Promise<Opened> {
  const connection = idle.get(url)?.pop() ?? (await connected(url))
  const reading: Reading = { onPayload, done: Promise.withResolvers() }
  reading.done.promise.catch(() => undefined)
  connection.reading = reading
  connection.send(`42["message",${message}]`)
  return { done: reading.done.promise, leave: connection.close }
}

export function closeSockets(): void {
  for (const connection of [...idle.values()].flat()) connection.close()
  idle.clear()
}

function connected(url: string): Promise<Connection> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  const ready = Promise.withResolvers<Connection>()
  const connection: Connection = {
    reading: undefined,
    send: (packet) => void socket.write(textFrame(packet)),
    close: () => void socket.destroy(),
  }
  socket.write(
    [
      'GET /socket.io/?EIO=4&transport=websocket HTTP/1.1',
      `host: ${hostname}:${port}`,
      'connection: Upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
      '\r\n',
    ].join('\r\n'),
  )
  readFrames(socket, (payload) => {
    const { reading } = connection
    if (reading === undefined) {
      // Engine.IO's handshake, then that of the namespace.
      const text = payload.toString()
      if (text.includes('0{"sid"') && !text.includes('40{"sid"')) connection.send('40')
      if (text.includes('40{"sid"')) ready.resolve(connection)
      return
    }
    reading.onPayload(payload)
    if (!payload.includes('"RUN_FINISHED"') && !payload.includes('"RUN_ERROR"')) return
    connection.reading = undefined
    idle.set(url, [...(idle.get(url) ?? []), connection])
    reading.done.resolve()
  })
  const failed = (error: Error) => {
    ready.reject(error)
    connection.reading?.done.reject(error)
    idle.set(
      url,
      (idle.get(url) ?? []).filter((each) => each !== connection),
    )
  }
  socket.on('error', failed)
  socket.on('close', () => failed(new Error('the connection ended before the answer was complete')))
  return ready.promise
}

/** Calls back with the payloads of the whole frames of a read, one behind the other. Answers pings. */
function readFrames(socket: Socket, onPayload: (payload: Buffer) => void): void {
  let rest: Buffer = Buffer.alloc(0)
  let isOpen = false
  socket.on('data', (bytes) => {
    let data = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
    if (!isOpen) {
      const end = data.indexOf('\r\n\r\n')
      rest = data
      if (end === -1) return
      if (!data.toString('latin1', 0, end).startsWith('HTTP/1.1 101')) return void socket.destroy()
      isOpen = true
      data = data.subarray(end + 4)
    }
    let read = 0
    let write = 0
    for (;;) {
      const size = frameSize(data, read)
      if (size === undefined || read + size.head + size.body > data.length) break
      const from = read + size.head
      read = from + size.body
      if (size.body === 1 && data[from] === 50) {
        socket.write(textFrame('3'))
        continue
      }
      data.copyWithin(write, from, read)
      write += size.body
    }
    rest = Buffer.from(data.subarray(read))
    if (write > 0) onPayload(data.subarray(0, write))
  })
}

/** Of an unmasked frame, as servers send them; absent while its head is incomplete. */
function frameSize(data: Buffer, at: number): { head: number; body: number } | undefined {
  const short = data[at + 1]
  if (short === undefined) return undefined
  const head = short < 126 ? 2 : short === 126 ? 4 : 10
  if (data.length < at + head) return undefined
  if (head === 2) return { head, body: short }
  return { head, body: head === 4 ? data.readUInt16BE(at + 2) : Number(data.readBigUInt64BE(at + 2)) }
}

/** A masked text frame: clients must mask. With the mask 0 the payload is as it was. */
function textFrame(text: string): Buffer {
  const payload = Buffer.from(text)
  const head = payload.length < 126 ? Buffer.alloc(2) : Buffer.alloc(4)
  head[0] = 0x81
  head[1] = 0x80 | (payload.length < 126 ? payload.length : 126)
  if (payload.length >= 126) head.writeUInt16BE(payload.length, 2)
  return Buffer.concat([head, Buffer.alloc(4), payload])
}

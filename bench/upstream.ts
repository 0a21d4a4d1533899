/**
 * The benchmark's model server: OpenAI's chat protocol, streaming only. It writes prepared bytes, one HTTP chunk per delta as
 * providers do, so its own cost is negligible.
 */
import { createServer, type Socket } from 'node:net'
import { answerCalls, ownCpu } from './calls.ts'
import { base, deltaChunk, lastChunks, roleChunk } from './chat-chunks.ts'
import { deltaText, nowMicros } from './deltas.ts'

export type Mode =
  /** All deltas at once, as fast as the socket takes them. */
  | { kind: 'burst'; deltas: number }
  /** `perSecond` deltas with send times per second, until `finish` is called. */
  | { kind: 'paced'; perSecond: number }
  /** One delta with its send time, then silence until `pace` or `finish` is called. */
  | { kind: 'first' }
  /** Deltas as fast as they are read, too many to prepare. `stays`: silence behind them, until `finish` is called. */
  | { kind: 'long'; deltas: number; stays?: boolean }

interface Stream {
  socket: Socket
  wantsUsage: boolean
  sent: number
  /** Time of the next delta, in µs. */
  due: number
  period: number
  /** Deltas in one write. */
  together: number
}

let mode: Mode = { kind: 'burst', deltas: 1 }
/** Streams in progress. */
const open = new Map<Socket, Stream>()
/** Times at which the client closed an unfinished stream. */
const closed: number[] = []
let closeWaits: ((at: number) => void)[] = []
/** Deltas sent to paced streams since the mode was set. */
let sent = 0
/** Deltas that were sent too long after they were due. */
let behind = 0
/** In µs. The timer below fires every 2 ms. */
const tooLate = 10_000

const head =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n'
const chunk = (data: string) => `${(data.length + 8).toString(16)}\r\ndata: ${data}\n\n\r\n`
const role = chunk(roleChunk)
const delta = (text: string) => chunk(deltaChunk(text))

function end(deltas: number, wantsUsage: boolean): string {
  return `${lastChunks(deltas, wantsUsage).map(chunk).join('')}0\r\n\r\n`
}

const bursts = new Map<string, Buffer>()
function burst(deltas: number, wantsUsage: boolean): Buffer {
  const key = `${deltas} ${wantsUsage}`
  let bytes = bursts.get(key)
  if (bytes === undefined) {
    const frames = Array.from({ length: deltas }, (_, i) => delta(deltaText(i)))
    bytes = Buffer.from(head + role + frames.join('') + end(deltas, wantsUsage), 'latin1')
    bursts.set(key, bytes)
  }
  return bytes
}

function answer(socket: Socket, body: string): void {
  const { stream, stream_options: options } = JSON.parse(body) as {
    stream?: boolean
    stream_options?: { include_usage?: boolean }
  }
  if (stream !== true) {
    const fault = '{"error":{"message":"This server streams only.","type":"invalid_request_error"}}'
    socket.write(
      `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${fault.length}\r\n\r\n${fault}`,
    )
    return
  }
  const wantsUsage = options?.include_usage === true
  if (mode.kind === 'burst') {
    socket.write(burst(mode.deltas, wantsUsage))
    return
  }
  if (mode.kind === 'long') {
    void pour(socket, mode, wantsUsage)
    return
  }
  const period = mode.kind === 'paced' ? 1e6 / mode.perSecond : Number.POSITIVE_INFINITY
  const now = nowMicros()
  const begun: Stream = { socket, wantsUsage, sent: 0, due: now + period, period, together: 1 }
  open.set(socket, begun)
  socket.write(head + role + nextDelta(begun, now), 'latin1')
}

/** Deltas in one write. */
const block = 200
const { service_tier: _, system_fingerprint: __, ...short } = base
/** As short as servers of one's own send them: an answer may have 256 MB, and a million of the others have more. */
const shortDelta = (content: string) =>
  chunk(JSON.stringify({ ...short, choices: [{ index: 0, delta: { content }, finish_reason: null }] }))

async function pour(
  socket: Socket,
  { deltas, stays = false }: { deltas: number; stays?: boolean },
  wantsUsage: boolean,
) {
  socket.write(head + role, 'latin1')
  for (let at = 0; at < deltas && !socket.destroyed; at += block) {
    const texts = Array.from({ length: Math.min(block, deltas - at) }, (___, i) => shortDelta(deltaText(at + i)))
    const { promise, resolve } = Promise.withResolvers<unknown>()
    socket.once('close', resolve)
    if (socket.write(texts.join(''), 'latin1')) setImmediate(resolve)
    else socket.once('drain', resolve)
    await promise
    socket.off('close', resolve)
  }
  if (stays)
    open.set(socket, { socket, wantsUsage, sent: deltas, due: Number.POSITIVE_INFINITY, period: 0, together: 1 })
  else socket.write(end(deltas, wantsUsage), 'latin1')
}

function nextDelta(stream: Stream, now: number): string {
  sent++
  return delta(deltaText(stream.sent++, now))
}

function finish(): { sent: number } {
  for (const { socket, sent: count, wantsUsage } of open.values()) socket.write(end(count, wantsUsage), 'latin1')
  open.clear()
  return { sent }
}

/** One timer for all streams, because thousands of timers would add load. */
setInterval(() => {
  const now = nowMicros()
  for (const stream of open.values()) {
    if (stream.due > now) continue
    // Read anew for each: the moment is when this delta leaves, not when the round of all of them began.
    const at = nowMicros()
    if (at - stream.due > tooLate) behind++
    stream.due += stream.period
    let text = nextDelta(stream, at)
    for (let i = 1; i < stream.together; i++) text += nextDelta(stream, at)
    stream.socket.write(text, 'latin1')
  }
}, 2)

const server = createServer({ noDelay: true }, (socket) => {
  let received = ''
  socket.setEncoding('latin1')
  socket.on('data', (piece) => {
    received += String(piece)
    for (;;) {
      const at = received.indexOf('\r\n\r\n')
      if (at === -1) return
      const length = Number(/^content-length: *(\d+)/imu.exec(received.slice(0, at))?.[1] ?? 0)
      const total = at + 4 + length
      if (received.length < total) return
      const body = received.slice(at + 4, total)
      received = received.slice(total)
      answer(socket, body)
    }
  })
  // Whatever goes wrong here ends in `close`.
  socket.on('error', () => undefined)
  socket.on('close', () => {
    if (!open.delete(socket)) return
    const at = nowMicros()
    const wait = closeWaits.shift()
    if (wait === undefined) closed.push(at)
    else wait(at)
  })
})

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number }
  process.stdout.write(`ready at http://127.0.0.1:${port}\n`)
})

answerCalls({
  mode(next: Mode) {
    const before = [...open.keys()]
    open.clear()
    for (const socket of before) socket.destroy()
    mode = next
    sent = 0
    behind = 0
    closed.length = 0
    closeWaits = []
  },
  /** Continues all open streams with so many writes a second of `together` deltas each, evenly staggered. */
  pace({ perSecond, together = 1 }: { perSecond: number; together?: number }) {
    const period = 1e6 / perSecond
    const now = nowMicros()
    let i = 0
    for (const stream of open.values()) {
      stream.period = period
      stream.together = together
      stream.due = now + (period * i++) / open.size
    }
  },
  finish,
  /** How many deltas it has sent to paced streams, and how many of them too late. */
  pacing: () => ({ sent, behind }),
  /** When the client closed a stream: the oldest time not yet reported. */
  nextClose: () => closed.shift() ?? new Promise<number>((resolve) => closeWaits.push(resolve)),
  cpu: ownCpu,
})

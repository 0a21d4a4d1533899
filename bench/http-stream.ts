/**
 * The load generator's HTTP client: one socket per request and minimal parsing, because it shares a core with the model server
 * and must not become the bottleneck.
 */
import { connect } from 'node:net'

export interface HttpRequest {
  url: string
  method?: 'GET' | 'POST'
  headers?: Record<string, string>
  body?: string
}

export interface Opened {
  /** Resolves when the body is complete; rejects on a status other than 2xx and on an incomplete transfer. */
  done: Promise<void>
  /** Drops the connection. */
  leave(): void
}

/** Sends a request and passes on the response body piece by piece, without the transfer encoding. */
export function openStream(request: HttpRequest, onPayload: (payload: Buffer) => void): Opened {
  const { hostname, port, pathname, search } = new URL(request.url)
  const { method = 'GET', headers = {}, body = '' } = request
  const done = Promise.withResolvers<void>()
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  const lines = [
    `${method} ${pathname}${search} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    'connection: close',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === '' ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]),
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`)

  let head: Buffer | undefined = Buffer.alloc(0)
  let decoder: Decoder | undefined
  let refusal: string | undefined

  function read(bytes: Buffer): void {
    if (head !== undefined) {
      head = Buffer.concat([head, bytes])
      const end = head.indexOf('\r\n\r\n')
      if (end === -1) return
      const text = head.toString('latin1', 0, end)
      if (!text.startsWith('HTTP/1.1 2')) refusal = `${text.slice(0, text.indexOf('\r\n'))} `
      decoder = decoderOf(text)
      bytes = head.subarray(end + 4)
      head = undefined
    }
    const payload = decoder!.push(bytes)
    if (payload.length > 0) {
      if (refusal === undefined) onPayload(payload)
      else refusal += payload.toString('utf8', 0, 300)
    }
    if (!decoder!.complete) return
    if (refusal === undefined) done.resolve()
    else done.reject(new Error(refusal))
    socket.destroy()
  }

  socket.on('data', (bytes) => {
    try {
      read(bytes)
    } catch (error) {
      done.reject(error)
      socket.destroy()
    }
  })
  socket.on('error', (error) => done.reject(error))
  socket.on('close', () => done.reject(new Error('the connection ended before the answer was complete')))
  // A stream may be dropped before anything awaits its end.
  done.promise.catch(() => undefined)
  return { done: done.promise, leave: () => void socket.destroy() }
}

/** Reads a whole response as text. */
export async function fetchText(request: HttpRequest): Promise<string> {
  const pieces: Buffer[] = []
  await openStream(request, (payload) => void pieces.push(Buffer.from(payload))).done
  return Buffer.concat(pieces).toString()
}

interface Decoder {
  readonly complete: boolean
  push(bytes: Buffer): Buffer
}

function decoderOf(head: string): Decoder {
  if (/^transfer-encoding: *chunked/imu.test(head)) return createChunkedDecoder()
  const noBody = head.startsWith('HTTP/1.1 204')
  const length = noBody ? 0 : Number(/^content-length: *(\d+)/imu.exec(head)?.[1] ?? Number.NaN)
  if (Number.isNaN(length)) throw new Error('the response is neither chunked nor has a content-length')
  let seen = 0
  return {
    get complete() {
      return seen >= length
    },
    push(bytes) {
      seen += bytes.length
      return bytes
    },
  }
}

/** Removes the chunk framing in place, so that the data of one read stays one piece. */
export function createChunkedDecoder(): Decoder {
  let state: 'size' | 'data' | 'line-end' | 'last-line' | 'complete' = 'size'
  let size = 0
  return {
    get complete() {
      return state === 'complete'
    },
    push(bytes) {
      let read = 0
      let write = 0
      while (read < bytes.length && state !== 'complete') {
        if (state === 'data') {
          const count = Math.min(size, bytes.length - read)
          bytes.copyWithin(write, read, read + count)
          read += count
          write += count
          size -= count
          if (size === 0) state = 'line-end'
          continue
        }
        const byte = bytes[read++]!
        if (byte === 13) continue
        if (byte !== 10) size = size * 16 + Number.parseInt(String.fromCharCode(byte), 16)
        else if (state === 'size') state = size === 0 ? 'last-line' : 'data'
        else state = state === 'last-line' ? 'complete' : 'size'
        if (Number.isNaN(size)) throw new Error('the response has a chunk with an invalid size')
      }
      return bytes.subarray(0, write)
    },
  }
}

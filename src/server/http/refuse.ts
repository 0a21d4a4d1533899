import type { Socket } from 'node:net'

const statusLines = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])

/** Answers malformed HTTP, oversized headers and timeouts. */
export function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const status = statusLines.get(error.code ?? '') ?? '400 Bad Request'
  const value = { message: `${status.slice(4)}.`, code: 'bad-request', type: 'invalid_request_error' }
  const body = JSON.stringify({ error: value })
  const head = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json`
  socket.end(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
}

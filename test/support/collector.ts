/** An OpenTelemetry collector for tests: OTLP/HTTP with JSON, read by OpenTelemetry's own protocol buffers. Anything else is a fault. */
import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import proto from 'opentelemetry-proto/build/src/generated/root.js'
import { onTestFinished } from 'vitest'

/** What the package's own types leave out of its generated code. */
interface Messages {
  fromObject(json: object): object
  toObject(message: object, options: object): object
  encode(message: object): { finish(): Uint8Array }
  decode(bytes: Uint8Array): object
}
interface Generated {
  opentelemetry: { proto: { collector: { trace: { v1: { ExportTraceServiceRequest: Messages } } } } }
}
const { ExportTraceServiceRequest } = (proto as unknown as Generated).opentelemetry.proto.collector.trace.v1

export interface ReceivedSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  /** Epoch ns. */
  start: bigint
  end: bigint
  attributes: Record<string, unknown>
  events: string[]
  status: { code?: number; message?: string }
  service: unknown
}

export interface Collector {
  url: string
  requests: { path: string; headers: IncomingHttpHeaders; body: string; spans: ReceivedSpan[] }[]
  readonly spans: ReceivedSpan[]
  /** Resolves when so many requests have come. */
  received(count: number): Promise<void>
}

export interface Reply {
  status: number
  headers?: Record<string, string>
  body?: string
  /** It is given only then. */
  after?: Promise<unknown>
}

/** `replies`: to the first requests; the rest are taken. */
export async function startCollector(...replies: Reply[]): Promise<Collector> {
  const requests: Collector['requests'] = []
  const waiting = new Set<() => void>()
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += String(chunk)))
    request.on('end', () => {
      const { status, headers, body: said = '{}', after } = replies[requests.length] ?? { status: 200 }
      requests.push({ path: request.url!, headers: request.headers, body, spans: decodeTraces(JSON.parse(body)) })
      const reply = () => response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(said)
      if (after === undefined) reply()
      else void after.then(reply)
      for (const look of waiting) look()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    get spans() {
      return requests.flatMap(({ spans }) => spans)
    },
    async received(count) {
      while (requests.length < count) {
        await new Promise<void>((resolve) => {
          const look = () => {
            waiting.delete(look)
            resolve()
          }
          waiting.add(look)
        })
      }
    },
  }
}

/**
 * Through OpenTelemetry's own protocol buffers: to bytes and back to protobuf's JSON, which must be what was sent. So every field is one
 * that they have, every value is whole, and 64-bit numbers are texts.
 */
function checkTraces(body: unknown): void {
  const bytes = ExportTraceServiceRequest.encode(ExportTraceServiceRequest.fromObject(withIds(body, fromHex))).finish()
  const read = ExportTraceServiceRequest.toObject(ExportTraceServiceRequest.decode(bytes), {
    longs: String,
    bytes: String,
    json: true,
  })
  assert.deepStrictEqual(withIds(read, toHex), withoutEmpty(body))
}

/** OTLP has ids as hex, where protobuf's JSON has all bytes as base64. */
function withIds(value: unknown, convert: (id: unknown) => string): object {
  return JSON.parse(JSON.stringify(value), (key, each: unknown) =>
    /^(?:trace|span|parentSpan)Id$/u.test(key) ? convert(each) : each,
  ) as object
}

function fromHex(id: unknown): string {
  assert.match(String(id), /^(?!0+$)(?:[\da-f]{16}|[\da-f]{32})$/u)
  return Buffer.from(String(id), 'hex').toString('base64')
}

function toHex(id: unknown): string {
  return Buffer.from(String(id), 'base64').toString('hex')
}

/** An empty list is the same as none. */
function withoutEmpty(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, each: unknown) =>
    Array.isArray(each) && each.length === 0 ? undefined : each,
  )
}

interface Attribute {
  key: string
  value: Record<string, unknown>
}

/** Throws at what is no `ExportTraceServiceRequest`. */
export function decodeTraces(body: unknown): ReceivedSpan[] {
  checkTraces(body)
  const { resourceSpans } = body as {
    resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: Raw[] }[] }[]
  }
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ startTimeUnixNano, endTimeUnixNano, attributes: given, events, ...rest }) => ({
        ...rest,
        start: BigInt(startTimeUnixNano),
        end: BigInt(endTimeUnixNano),
        attributes: toRecord(given),
        events: events.map(({ name }) => name),
        service: toRecord(resource.attributes)['service.name'],
      })),
    ),
  )
}

interface Raw extends Pick<ReceivedSpan, 'traceId' | 'spanId' | 'parentSpanId' | 'name' | 'kind' | 'status'> {
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attribute[]
  events: { name: string }[]
}

function toRecord(list: Attribute[]): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, plain(value)]))
}

function plain(value: Record<string, unknown>): unknown {
  if ('arrayValue' in value) return (value['arrayValue'] as { values: Record<string, unknown>[] }).values.map(plain)
  return 'intValue' in value ? Number(value['intValue']) : Object.values(value)[0]
}

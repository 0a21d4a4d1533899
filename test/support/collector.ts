/** An OpenTelemetry collector for tests: OTLP/HTTP with JSON, as its protocol buffers define it. Anything else is a fault. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

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

type Check = (value: unknown, at: string) => unknown

/** The messages of opentelemetry/proto/trace/v1/trace.proto and common.proto, in protobuf's JSON. */
const text: Check = (value, at) => must(typeof value === 'string', value, at)
const flag: Check = (value, at) => must(typeof value === 'boolean', value, at)
const double: Check = (value, at) => must(typeof value === 'number', value, at)
const int32: Check = (value, at) => must(Number.isInteger(value), value, at)
const int64: Check = (value, at) => must(typeof value === 'string' && /^-?\d{1,19}$/u.test(value), value, at)
const hex = (bytes: number): Check => {
  const form = new RegExp(`^(?!0+$)[\\da-f]{${bytes * 2}}$`, 'u')
  return (value, at) => must(typeof value === 'string' && form.test(value), value, at)
}
const list =
  (item: Check): Check =>
  (value, at) => {
    must(Array.isArray(value), value, at)
    return (value as unknown[]).map((each, i) => item(each, `${at}[${i}]`))
  }
const message =
  (fields: () => Record<string, Check>): Check =>
  (value, at) => {
    must(typeof value === 'object' && value !== null && !Array.isArray(value), value, at)
    const known = fields()
    for (const [name, each] of Object.entries(value as object)) {
      const check = known[name]
      if (check === undefined) throw new Error(`${at}.${name} is no field`)
      check(each, `${at}.${name}`)
    }
    return value
  }
const anyValue: Check = message(() => ({
  stringValue: text,
  boolValue: flag,
  intValue: int64,
  doubleValue: double,
  arrayValue: message(() => ({ values: list(anyValue) })),
}))
const attributes = list(message(() => ({ key: text, value: anyValue })))
const event = message(() => ({ timeUnixNano: int64, name: text, attributes, droppedAttributesCount: int32 }))
const span = message(() => ({
  traceId: hex(16),
  spanId: hex(8),
  parentSpanId: hex(8),
  traceState: text,
  flags: int32,
  name: text,
  kind: int32,
  startTimeUnixNano: int64,
  endTimeUnixNano: int64,
  attributes,
  events: list(event),
  status: message(() => ({ code: int32, message: text })),
}))
const scope = message(() => ({ name: text, version: text, attributes }))
const traces = message(() => ({
  resourceSpans: list(
    message(() => ({
      resource: message(() => ({ attributes })),
      scopeSpans: list(message(() => ({ scope, spans: list(span), schemaUrl: text }))),
      schemaUrl: text,
    })),
  ),
}))

function must(holds: boolean, value: unknown, at: string): unknown {
  if (!holds) throw new Error(`${at} must not be ${JSON.stringify(value)}`)
  return value
}

interface Attribute {
  key: string
  value: Record<string, unknown>
}

/** Throws at what is no `ExportTraceServiceRequest`. */
export function decodeTraces(body: unknown): ReceivedSpan[] {
  traces(body, 'body')
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

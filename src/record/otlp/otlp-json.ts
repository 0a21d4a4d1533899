/** Spans as OTLP/JSON: the body of `POST /v1/traces`. */
import type { AttributeValue, Attributes, Span } from './span.ts'

/** Whose spans they are. */
export interface Resource {
  serviceName: string
  serviceVersion?: string
}

const kinds = { internal: 1, client: 3 } as const
const failed = 2
const doubles: ReadonlySet<string> = new Set([
  'gen_ai.usage.cost',
  'gen_ai.response.time_to_first_chunk',
  'millrace.usage.known_cost',
])

/** The body of `POST /v1/traces`, to be sent as JSON. */
export function toOtlp(spans: readonly Span[], { serviceName, serviceVersion }: Resource): object {
  const attributes = toKeyValues({ 'service.name': serviceName, 'service.version': serviceVersion })
  const scopeSpans = [{ scope: { name: 'millrace' }, spans: spans.map(toSpan) }]
  return { resourceSpans: [{ resource: { attributes }, scopeSpans }] }
}

function toSpan({ attributes, error, ...span }: Span) {
  const { traceId, spanId, parentSpanId, flags, name, kind, startedAt, endedAt, events } = span
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? undefined : { parentSpanId }),
    flags,
    name,
    kind: kinds[kind],
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: toKeyValues(error === undefined ? attributes : { ...attributes, 'error.type': error.type }),
    events: events.map((event) => ({
      timeUnixNano: nanoseconds(event.time),
      name: event.name,
      attributes: toKeyValues(event.attributes),
    })),
    status: error === undefined ? {} : { code: failed, ...(error.message && { message: error.message }) },
  }
}

/** 64-bit numbers are strings in protobuf's JSON. */
function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms)) * 1_000_000n)
}

function toKeyValues(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) => {
    // What was recorded elsewhere may hold anything.
    if (value === undefined || value === null) return []
    // A collector's column has one type: 1 USD must not be an integer where 1.5 is none.
    return [{ key, value: doubles.has(key) ? { doubleValue: Number(value) } : toValue(value) }]
  })
}

function toValue(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value !== 'number') return { arrayValue: { values: value.map(toValue) } }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

/** The same spans through OpenTelemetry's own SDK and serializer. */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api'
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeTraces } from '../../../test/support/collector.ts'
import type { Entry } from '../../part/entry.ts'
import { toOtlp } from './otlp-json.ts'
import type { Span } from './span.ts'
import { spansOf } from './span-fold.ts'

const resource = { serviceName: 'shop', serviceVersion: '1.2.3' }
const kinds = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT }

/** What the SDK writes for spans with these ids, times and attributes. */
async function official(spans: readonly Span[], remote: string | undefined): Promise<unknown> {
  const exporter = new InMemorySpanExporter()
  const attributes = { 'service.name': resource.serviceName, 'service.version': resource.serviceVersion }
  for (const span of spans) {
    const { traceId, spanId, parentSpanId } = span
    const provider = new TracerProvider({
      resource: resourceFromAttributes(attributes),
      idGenerator: { generateSpanId: () => spanId, generateTraceId: () => traceId },
      spanProcessors: [new SimpleSpanProcessor({ exporter })],
    })
    const parent = parentSpanId && {
      traceId,
      spanId: parentSpanId,
      traceFlags: TraceFlags.SAMPLED,
      isRemote: parentSpanId === remote,
    }
    const own = provider
      .getTracer('millrace')
      .startSpan(
        span.name,
        { kind: kinds[span.kind], startTime: span.startedAt, attributes: span.attributes as {} },
        parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT,
      )
    for (const event of span.events) own.addEvent(event.name, event.attributes as {}, event.time)
    if (span.error !== undefined) {
      own.setAttribute('error.type', span.error.type)
      const { message } = span.error
      own.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? undefined : { message }) })
    }
    own.end(span.endedAt)
    await provider.forceFlush()
  }
  const written = exporter.getFinishedSpans().map((span) => {
    const { resourceSpans } = JSON.parse(new TextDecoder().decode(JsonTraceSerializer.serializeRequest([span]))) as {
      resourceSpans: { scopeSpans: { spans: unknown[] }[] }[]
    }
    return resourceSpans
  })
  const [first] = written[0]!
  const all = written.flatMap((each) => each[0]!.scopeSpans[0]!.spans)
  return { resourceSpans: [{ ...first, scopeSpans: [{ ...first!.scopeSpans[0], spans: all }] }] }
}

/** As protobuf's JSON has it: a default may be left out, and a 64-bit number may be a string. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(
        ([key, each]) => !(/^dropped|^code$/u.test(key) && each === 0) && !(key === 'links' && String(each) === ''),
      )
      .map(([key, each]) => [key, key === 'intValue' ? String(each) : canonical(each)])
      .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
  )
}

const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15, source: 'reported' }
const error = { code: 'step-failed', message: 'No.' }
const caller = '00f067aa0ba902b7'
function run(traceparent?: string): Entry[] {
  const step = 'main/answer/1'
  return [
    { type: 'run-start', runId: 'r', agent: 'a', threadId: 't', protocol: 'api', ...(traceparent && { traceparent }) },
    { type: 'step-start', step: 'main/answer', stepType: 'llm', kind: 'tool-loop', attempt: 1 },
    { type: 'step-start', step, stepType: 'model-call', kind: 'model-call', attempt: 1 },
    { type: 'prompt', step, stage: 'answer', model: 'openai:gpt-5', messages: [] },
    { type: 'retry', step, attempt: 2, error },
    { type: 'text-delta', step, id: 'x', delta: 'Hello' },
    { type: 'usage', step, model: 'openai:gpt-5', usage, cost: 1.5 },
    { type: 'step-finish', step, duration: 9, finishReason: 'stop', usage },
    { type: 'suspend' },
    { type: 'resume' },
    { type: 'step-finish', step: 'main/answer', duration: 12, error },
    { type: 'run-end', outcome: 'failed', usage, cost: 1.5, error },
  ].map((part, i) => ({ seq: i + 1, timestamp: 1_700_000_000_123 + 7 * i, step: '', ...part }) as unknown as Entry)
}

describe('toOtlp', () => {
  test.each([
    ['a run of its own', undefined],
    ['a run in the trace of its caller', `00-4bf92f3577b34da6a3ce929d0e0e4736-${caller}-01`],
  ])('OpenTelemetry writes the same OTLP/JSON: %s', async (_, traceparent) => {
    const spans = spansOf(run(traceparent), { content: true })
    expect(spans).toHaveLength(3)
    expect(spans.flatMap(({ events }) => events).length).toBeGreaterThanOrEqual(3)
    const own = JSON.parse(JSON.stringify(toOtlp(spans, resource))) as unknown
    expect(canonical(own)).toEqual(canonical(await official(spans, caller)))
  })

  test('OpenTelemetry’s own protocol buffers read every value and every time as it was', () => {
    const texts = fc.string({ unit: 'binary' })
    const integers = fc.maxSafeInteger().filter((value) => !Object.is(value, -0))
    const doubles = fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0))
    const values = fc.oneof(texts, fc.boolean(), integers, doubles, fc.array(texts, { minLength: 1 }))
    const times = fc.nat({ max: 2 ** 42 })
    fc.assert(
      fc.property(fc.dictionary(texts, values), values, times, times, (attributes, cost, startedAt, endedAt) => {
        const price = typeof cost === 'number' ? { 'gen_ai.usage.cost': cost } : {}
        const [whole] = spansOf(run())
        const span: Span = { ...whole!, startedAt, endedAt, attributes: { ...attributes, ...price } }
        const [read] = decodeTraces(JSON.parse(JSON.stringify(toOtlp([span], resource))))
        expect(read).toMatchObject({ start: BigInt(startedAt) * 1_000_000n, end: BigInt(endedAt) * 1_000_000n })
        expect(read!.attributes).toEqual(span.attributes)
      }),
      { numRuns: 30 },
    )
  })
})

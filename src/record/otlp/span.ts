/** A span as OpenTelemetry defines it, before it is encoded. */

export type AttributeValue = string | number | boolean | readonly string[]
/** Undefined ones are left out. */
export type Attributes = Record<string, AttributeValue | undefined>

/** Times are epoch ms. */
export interface Span {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  /** Ours, or a request to another service. */
  kind: 'internal' | 'client'
  startedAt: number
  endedAt: number
  attributes: Attributes
  /** Bit 0: the caller wants the trace recorded. Bit 8: whether the parent is another process's is known; bit 9: it is. */
  flags: number
  events: { name: string; time: number; attributes: Attributes }[]
  /** `message` is content: only for users who may see content. */
  error?: { type: string; message?: string }
}

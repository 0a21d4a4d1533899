/**
 * The log itself as a wire: every entry as recorded. NDJSON, or SSE with the `seq` as event id, so that an `EventSource`
 * reconnects with `Last-Event-ID`. Both continue across suspends and end after `run-end`.
 *
 * | part | event |
 * |---|---|
 * | every part | its entry as JSON |
 * | a failure that is not in the log | `{"type":"error","error":{code,message}}`, without `seq` because it is not an entry |
 */
import type { Entry } from '../../part/entry.ts'
import { createEntryLines } from '../../part/entry-lines.ts'
import type { ErrorValue } from '../../part/error.ts'
import { ndjson, sse } from '../framing/text-frames.ts'
import { createWire, type Projection, type Sink, type WireContext } from '../wire.ts'

/** An entry, or a failure that is not in the log. */
export type PartsEvent = Entry | { type: 'error'; seq?: undefined; error: ErrorValue }

/** Options of a log as a wire. */
export interface PartsOptions {
  /** Only entries of these types. Default: all. The end of the run ends it either way. */
  types: readonly string[]
}

/** The log as lines of JSON. */
export const partsWire = createWire({
  name: 'parts',
  project: projectParts,
  framing: ndjson({ toJson }),
  showsLog: true,
  isStateless: true,
})

/** The log over SSE, with the `seq` as event id. */
export const partsSseWire = createWire({
  name: 'parts-sse',
  project: projectParts,
  framing: sse<PartsEvent>({ id: ({ seq }) => seq, toJson }),
  showsLog: true,
  isStateless: true,
})

function toJson(): (event: PartsEvent) => string {
  const toLine = createEntryLines()
  return (event) => (event.seq === undefined ? JSON.stringify(event) : toLine(event))
}

function projectParts(sink: Sink<PartsEvent>, _: WireContext, { types }: Partial<PartsOptions>): Projection {
  const wanted = types && new Set<string>(types)
  const projection = {
    state: 'open' as Projection['state'],
    apply(entry: Entry) {
      if (projection.state !== 'open') return
      if (entry.type === 'run-end') projection.state = 'complete'
      if (wanted === undefined || wanted.has(entry.type)) sink.send(entry)
    },
    fail(error: ErrorValue) {
      projection.state = 'complete'
      sink.send({ type: 'error', error })
    },
  }
  return projection
}

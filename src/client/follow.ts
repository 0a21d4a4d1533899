/** Reads a run's log over HTTP. When the connection breaks, it reconnects and continues after the last entry received. */
import { anySignal } from '../async/any-signal.ts'
import type { Entry } from '../part/entry.ts'
import { MillraceError, type ErrorValue } from '../part/error.ts'
import { leavable } from '../async/leavable.ts'
import { pause } from '../async/pause.ts'
import type { PartType } from '../part/part.ts'
import { request, type ServerAddress } from './request.ts'

/** Options of `follow`. */
export interface FollowOptions {
  /** Only parts of these types. The end of the run is detected either way. */
  types?: readonly PartType[]
  /** Ends the iteration without throwing. The run goes on. */
  signal?: AbortSignal
  /** How many reconnects in a row may fail. Default 8, which takes about a minute. */
  retries?: number
}

/**
 * Yields the entries with `seq > after`, stored ones first, until the run ends. Throws a `MillraceError` with the server's
 * code (`unknown-run` …), or `connection-lost` when reconnecting fails.
 */
export function follow(
  connection: ServerAddress,
  runId: string,
  after: number,
  { signal, ...options }: FollowOptions = {},
): AsyncGenerator<Entry, void, void> {
  return leavable((left) => {
    const either = signal === undefined ? left : anySignal([left, signal])
    return entries(connection, runId, after, { ...options, signal: either })
  })
}

async function* entries(
  connection: ServerAddress,
  runId: string,
  after: number,
  { types, signal, retries = 8 }: FollowOptions & { signal: AbortSignal },
): AsyncGenerator<Entry, void, void> {
  const wanted = types && new Set<string>(types)
  const query = wanted && `&types=${[...wanted, 'run-end'].join(',')}`
  let failures = 0
  while (!signal.aborted) {
    try {
      const path = `/api/runs/${encodeURIComponent(runId)}/events?after=${after}${query ?? ''}`
      const response = await request(connection, path, { accept: 'text/event-stream', signal })
      // 204: the run has ended and there are no entries after `after`.
      if (response.status === 204 || response.body === null) return
      for await (const value of events(response.body)) {
        if (value.seq === undefined) throw toError(value.error)
        failures = 0
        after = value.seq
        if (wanted?.has(value.type) !== false) yield value as Entry
        if (value.type === 'run-end') return
      }
      throw new MillraceError('connection-lost', `The run ${runId} was cut off: the connection closed before it ended.`)
    } catch (error) {
      if (signal.aborted) return
      if (!mayComeBack(error) || ++failures > retries) throw error
    }
    await pause(Math.min(16_000, 250 * 2 ** (failures - 1)) * (0.5 + Math.random() / 2), signal)
  }
}

type FollowFrame = (Entry & { error?: undefined }) | { type: 'error'; seq?: undefined; error?: ErrorValue }

async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<FollowFrame> {
  for await (const data of readSse(body)) yield JSON.parse(data) as FollowFrame
}

/** An error frame that is not in the log: the server shuts down, or its store fails. Worth a retry, hence 503. */
function toError({ code = 'error', message = 'The log cannot be read.' }: Partial<ErrorValue> = {}): MillraceError {
  return new MillraceError(code, message, { status: 503 })
}

function mayComeBack(error: unknown): boolean {
  if (!(error instanceof MillraceError)) return false
  const { status = 503 } = error
  return status >= 500 || status === 429
}

/*
 * Parses server-sent events from chunks of text. https://html.spec.whatwg.org/multipage/server-sent-events.html
 * Not `eventsource-parser`: it would make the client, 3 kB compressed, half as large again, and pages need only the data.
 */

/** The data of each event of a body. Throws `connection-lost` when the connection breaks. */
export async function* readSse(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const read = createSseReader()
  const decoder = new TextDecoder()
  // No `for await` on the stream: Safari does not support it.
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw new MillraceError('connection-lost', 'The connection was lost.', { cause })
      })
      if (done) return
      yield* read(decoder.decode(value, { stream: true }))
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}

/** The returned function takes a chunk of the body and returns the data of each completed event. It ignores comments and other fields. */
export function createSseReader(): (chunk: string) => string[] {
  /** The unfinished line. A line of many megabytes comes in many chunks: each is searched once, and joined at the line's end. */
  let pieces: string[] = []
  /** A chunk may end between \r and \n: the \r waits for the next chunk. */
  let heldReturn = ''
  let data: string[] = []
  return (chunk) => {
    const text = heldReturn + chunk
    heldReturn = text.endsWith('\r') ? '\r' : ''
    const lines = text.slice(0, text.length - heldReturn.length).split(/\r\n|\n|\r/u)
    pieces.push(lines[0]!)
    if (lines.length === 1) return []
    lines[0] = pieces.join('')
    pieces = [lines.pop()!]
    const events: string[] = []
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
      else if (line === '' && data.length > 0) {
        events.push(data.join('\n'))
        data = []
      }
    }
    return events
  }
}

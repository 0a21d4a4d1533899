/** A run's log over HTTP, across connections that break: each comes back for what is behind the last entry that was seen. */
import type { Entry } from '../part/entry.ts'
import { MillraceError, type ErrorValue } from '../part/error.ts'
import { leavable } from '../part/leavable.ts'
import { pause } from '../part/pause.ts'
import type { PartType } from '../part/part.ts'
import { request, type Connection } from './request.ts'
import { createSseReader } from './sse.ts'

/** How a log is followed. */
export interface FollowOptions {
  /** Only these parts; how the run ended is seen either way. */
  types?: readonly PartType[]
  /** Ends the iteration without throwing. The run goes on. */
  signal?: AbortSignal
  /** How often in a row it is tried in vain to come back. Default 8: about a minute. */
  retries?: number
}

/**
 * The entries with `seq > after`, stored and then live, until the run has ended. Throws `MillraceError`: what the server
 * refuses (`unknown-run` …), what it says when the log cannot go on, and `connection-lost` when it does not come back.
 */
export function follow(
  connection: Connection,
  runId: string,
  after: number,
  { signal, ...options }: FollowOptions = {},
): AsyncGenerator<Entry, void, void> {
  return leavable((left) => {
    const either = signal === undefined ? left : AbortSignal.any([left, signal])
    return entries(connection, runId, after, { ...options, signal: either })
  })
}

async function* entries(
  connection: Connection,
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
      // Nothing is left of a run that has ended.
      if (response.status === 204 || response.body === null) return
      for await (const value of events(response.body)) {
        if (value.seq === undefined) throw told(value.error)
        failures = 0
        after = value.seq
        if (wanted?.has(value.type) !== false) yield value as Entry
        if (value.type === 'run-end') return
      }
      throw new MillraceError('connection-lost', `The connection to run ${runId} broke before its end.`)
    } catch (error) {
      if (signal.aborted) return
      if (!mayComeBack(error) || ++failures > retries) throw error
    }
    await pause(Math.min(16_000, 250 * 2 ** (failures - 1)) * (0.5 + Math.random() / 2), signal)
  }
}

type Frame = (Entry & { error?: undefined }) | { type: 'error'; seq?: undefined; error?: ErrorValue }

async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const read = createSseReader()
  const decoder = new TextDecoder()
  // Not `for await` on the stream: Safari cannot.
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw new MillraceError('connection-lost', 'The connection broke.', { cause })
      })
      if (done) return
      for (const data of read(decoder.decode(value, { stream: true }))) yield JSON.parse(data) as Frame
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}

/** A failure that the log does not hold: a server that shuts down or whose store fails. Another time it may work. */
function told({ code = 'error', message = 'The log cannot be read.' }: Partial<ErrorValue> = {}): MillraceError {
  return new MillraceError(code, message, { status: 503 })
}

function mayComeBack(error: unknown): boolean {
  if (!(error instanceof MillraceError)) return false
  const { status = 503 } = error
  return status >= 500 || status === 429
}

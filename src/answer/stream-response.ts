/**
 * Streams a run's answer. The response is a cursor into the log: it reads a batch when the client is ready for more and
 * encodes it into one write. It buffers nothing else, so a slow client costs one batch.
 */
import type { Entry } from '../part/entry.ts'
import { mergeDeltas } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import { createSuperseded } from '../fold/superseded.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Encoder, Wire, WireContext } from '../wire/wire.ts'
import type { AnswerContext } from './answer-context.ts'
import { createRunReader, type RunReader } from './run-reader.ts'
import { toBody, type BodySource } from './streamed-body.ts'

export interface StreamOptions {
  runId: string
  wire: Wire
  context?: WireContext
  /** Options of the wire. */
  options?: object
  /** Send entries from this `seq` on. Default 0: from the start of the run. */
  from?: number
  /** The wire is stateless, so entries below `from` need not be read. */
  seek?: boolean
  /** Selects the entries of each batch to send, see {@link replayFilter}. Default: all. */
  filter?: ((entries: Entry[]) => Entry[]) | undefined
  /** What happens to the run when this client disconnects. Default: nothing. */
  policy?: DisconnectPolicy
  headers?: Record<string, string>
}

/** A prepared response, to be sent or dropped. */
export interface StreamedAnswer {
  response: Response
  /** The reader of the body. Peeking with it does not consume entries. */
  reader: RunReader
  /** Call this instead of sending it. `finished`: the client gets another response, so this is not a disconnect. */
  drop(finished: boolean): void
}

export function streamAnswer(context: AnswerContext, options: StreamOptions): StreamedAnswer {
  const { runId, wire, seek = false, from = 0 } = options
  const reader = createRunReader(context.runtime.store.log, runId, seek ? from - 1 : 0)
  const { source, drop } = createSource(wire.createEncoder(options.context, options.options), context, options, reader)
  const body = toBody(source)
  const headers = {
    'content-type': wire.contentType,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    'x-millrace-run-id': runId,
    ...wire.headers,
    ...options.headers,
  }
  return { response: new Response(body, { headers }), reader, drop }
}

const same = (entries: Entry[]): Entry[] => entries

/** For a client that reads a run from its start later: merges deltas and drops attempts that a crash superseded. */
export async function replayFilter(runtime: Runtime, runId: string): Promise<(entries: Entry[]) => Entry[]> {
  const superseded = createSuperseded()
  for await (const batch of runtime.store.log.read(runId)) for (const entry of batch) superseded.note(entry)
  return (entries) => mergeDeltas(entries.filter((entry) => !superseded.has(entry)))
}

function createSource(
  encoder: Encoder,
  { runtime, keepAliveMs, onError }: AnswerContext,
  { runId, wire, from = 0, policy, filter = same }: StreamOptions,
  reader: RunReader,
) {
  const release = policy === undefined ? undefined : runtime.attach(runId, policy)
  let lastWrite = performance.now()
  let timer: ReturnType<typeof setTimeout> | undefined
  let failure: ErrorValue = { code: 'closing', message: 'The server is shutting down.' }
  let left = false

  const unwatch = runtime.onLost(runId, (error) => {
    failure = error
    reader.close()
  })

  function drop(finished: boolean): void {
    if (left) return
    left = true
    unwatch()
    clearTimeout(timer)
    reader.close()
    release?.({ finished })
  }

  function encode(batch: Entry[]): string {
    for (const entry of batch) {
      if (entry.seq < from) encoder.skip(entry)
      else encoder.write(entry)
    }
    return encoder.take()
  }

  // Callbacks created once instead of async functions: a new pending promise chain per delta is most of the garbage that an
  // idle stream produces.
  let asked: PromiseWithResolvers<string | undefined> | undefined

  function advance(): void {
    // The previous call has delivered what was written before the transfer breaks.
    if (encoder.state === 'broken') asked!.reject(new Error('The answer is incomplete.'))
    else if (encoder.state === 'complete') asked!.resolve(undefined)
    else {
      try {
        reader.next().then(read, lose)
      } catch (error) {
        lose(error)
      }
    }
  }

  function read(batch: Awaited<ReturnType<RunReader['next']>>): void {
    try {
      give(textOf(batch))
    } catch (error) {
      asked!.reject(error)
    }
  }

  function lose(error: unknown): void {
    try {
      give(lost(error))
    } catch (thrown) {
      asked!.reject(thrown)
    }
  }

  function textOf({ done, value }: Awaited<ReturnType<RunReader['next']>>): string | undefined {
    try {
      return done ? undefined : encode(filter(value))
    } catch (error) {
      return lost(error)
    }
  }

  function lost(error: unknown): undefined {
    onError(error)
    failure = { code: 'store-failed', message: 'The run can no longer be read.' }
  }

  /** Delivers text for the next write; undefined at the end of the log. */
  function give(given: string | undefined): void {
    if (left) return asked!.resolve(undefined)
    const text = given ?? encoder.fail(failure)
    if (encoder.state !== 'open') drop(true)
    lastWrite = performance.now()
    if (text === '') advance()
    else asked!.resolve(text)
  }

  // Checks the time of the last write when it fires, instead of resetting the timer with every write.
  function watch(ms: number): void {
    timer = setTimeout(() => {
      const rest = lastWrite + keepAliveMs - performance.now()
      if (rest > 0) return watch(rest)
      lastWrite = performance.now()
      source.say?.(wire.keepAlive)
      watch(keepAliveMs)
    }, ms)
    timer.unref?.()
  }

  if (wire.keepAlive !== '') watch(keepAliveMs)
  const source: BodySource = {
    next() {
      asked = Promise.withResolvers()
      const { promise } = asked
      advance()
      return promise
    },
    leave: () => drop(false),
  }
  return { source, drop }
}

/**
 * A run's answer as a streamed response. The response is a cursor into the log: it pulls a batch when the client has room
 * for one, encodes it into one write, and holds nothing else; a slow client costs one batch.
 */
import type { Entry } from '../part/entry.ts'
import { mergeDeltas } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import { createSuperseded } from '../part/superseded.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import type { Runtime } from '../run/runtime.ts'
import type { Encoder, EncoderOptions, Wire } from '../wire/wire.ts'
import type { HandlerContext } from './handler.ts'
import { createRunReader, type RunReader } from './run-reader.ts'
import { toBody, type BodySource } from './streamed-body.ts'

export interface StreamOptions {
  runId: string
  wire: Wire
  encoder?: EncoderOptions
  /** The client has seen everything below this `seq`, or begins here. Default 0: from the run's start. */
  from?: number
  /** The wire keeps nothing from entry to entry, so those below `from` need not be read. */
  seek?: boolean
  /** What of each batch is told: {@link replayFilter}. Default: all of it. */
  filter?: ((entries: Entry[]) => Entry[]) | undefined
  /** What it means for the run when this client leaves. Absent: a follower, whose leaving means nothing. */
  policy?: DisconnectPolicy
  headers?: Record<string, string>
}

/** A response that is ready to be sent, and may still turn out not to be. */
export interface StreamedAnswer {
  response: Response
  /** What its body reads: who looks ahead with it takes nothing from that. */
  reader: RunReader
  /** Instead of sending it. `finished`: its client gets all there is by other means, and has not left. */
  drop(finished: boolean): void
}

export function streamAnswer(context: HandlerContext, options: StreamOptions): StreamedAnswer {
  const { runId, wire, seek = false, from = 0 } = options
  const reader = createRunReader(context.runtime.store.log, runId, seek ? from - 1 : 0)
  const { source, drop } = createSource(wire.createEncoder(options.encoder), context, options, reader)
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

/** For a fresh reader of an old run: finished blocks in few frames, attempts that a crash made void left out. */
export async function replayFilter(runtime: Runtime, runId: string): Promise<(entries: Entry[]) => Entry[]> {
  const superseded = createSuperseded()
  for await (const batch of runtime.store.log.read(runId)) for (const entry of batch) superseded.note(entry)
  return (entries) => mergeDeltas(entries.filter((entry) => !superseded.has(entry)))
}

function createSource(
  encoder: Encoder,
  { runtime, keepAliveMs, onError }: HandlerContext,
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
    let text = ''
    for (const entry of batch) {
      if (entry.seq < from) encoder.skip(entry)
      else text += encoder.encode(entry)
    }
    return text
  }

  // Callbacks that are made once instead of functions that wait: what waits for the next delta is made anew for each, and
  // is most of what a stream that is silent in between leaves to be collected.
  let asked: PromiseWithResolvers<string | undefined> | undefined

  function advance(): void {
    // What was written is taken before the transfer breaks, by the call before.
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
    failure = { code: 'store-failed', message: 'The run cannot be read any more.' }
  }

  /** Text for the next write; undefined once the log gives no more. */
  function give(given: string | undefined): void {
    if (left) return asked!.resolve(undefined)
    const text = given ?? encoder.fail(failure)
    if (encoder.state !== 'open') drop(true)
    lastWrite = performance.now()
    if (text === '') advance()
    else asked!.resolve(text)
  }

  // Looks when the silence may be over instead of being set anew with every write.
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

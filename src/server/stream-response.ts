/**
 * A run's answer as a streamed response. The response is a cursor into the log: it pulls a batch when the client has room
 * for one, encodes it into one write, and holds nothing else; a slow client costs one batch.
 */
import type { Entry } from '../part/entry.ts'
import { mergeDeltas } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import { createSuperseded } from '../part/superseded.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import type { Encoder, EncoderOptions, Wire } from '../wire/wire.ts'
import type { HandlerContext } from './handler.ts'
import { toBody, type BodySource } from './streamed-body.ts'

export interface StreamOptions {
  runId: string
  wire: Wire
  encoder?: EncoderOptions
  /** The client has seen everything below this `seq`, or begins here. Default 0: from the run's start. */
  from?: number
  /** The wire keeps nothing from entry to entry, so those below `from` need not be read. */
  seek?: boolean
  /** A fresh reader of an old run: finished blocks in few frames, attempts that a crash made void left out. */
  replay?: boolean
  /** What it means for the run when this client leaves. Absent: a follower, whose leaving means nothing. */
  policy?: DisconnectPolicy
  headers?: Record<string, string>
}

export async function streamResponse(context: HandlerContext, options: StreamOptions): Promise<Response> {
  const { runId, wire } = options
  const filter = options.replay ? await replayFilter(context, runId) : same
  const body = toBody(createSource(wire.createEncoder(options.encoder), context, options, filter))
  const headers = {
    'content-type': wire.contentType,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    'x-millrace-run-id': runId,
    ...wire.headers,
    ...options.headers,
  }
  return new Response(body, { headers })
}

const same = (entries: Entry[]): Entry[] => entries

async function replayFilter({ runtime }: HandlerContext, runId: string): Promise<(entries: Entry[]) => Entry[]> {
  const superseded = createSuperseded()
  for await (const batch of runtime.store.log.read(runId)) for (const entry of batch) superseded.note(entry)
  return (entries) => mergeDeltas(entries.filter((entry) => !superseded.has(entry)))
}

function createSource(
  encoder: Encoder,
  { runtime, keepAliveMs, onError }: HandlerContext,
  { runId, wire, from = 0, seek = false, policy }: StreamOptions,
  filter: (entries: Entry[]) => Entry[],
): BodySource {
  const leave = new AbortController()
  const entries = runtime.store.log.read(runId, seek ? from - 1 : 0, leave.signal)[Symbol.asyncIterator]()
  const release = policy === undefined ? undefined : runtime.attach(runId, policy)
  let lastWrite = Date.now()
  let timer: ReturnType<typeof setTimeout> | undefined
  let failure: ErrorValue = { code: 'closing', message: 'The server is shutting down.' }
  let left = false

  const unwatch = runtime.onLost(runId, (error) => {
    failure = error
    leave.abort('left')
  })

  function done(finished: boolean): void {
    if (left) return
    left = true
    unwatch()
    clearTimeout(timer)
    leave.abort('left')
    release?.({ finished })
  }

  function encode(batch: Entry[]): string {
    let text = ''
    for (const entry of filter(batch)) {
      if (entry.seq < from) encoder.skip(entry)
      else text += encoder.encode(entry)
    }
    return text
  }

  /** Text for the next write; undefined once the log gives no more. */
  async function read(): Promise<string | undefined> {
    try {
      const { done: ended, value } = await entries.next()
      return ended ? undefined : encode(value)
    } catch (error) {
      onError(error)
      failure = { code: 'store-failed', message: 'The run cannot be read any more.' }
      return undefined
    }
  }

  // Looks when the silence may be over instead of being set anew with every write.
  function watch(ms: number): void {
    timer = setTimeout(() => {
      const rest = lastWrite + keepAliveMs - Date.now()
      if (rest > 0) return watch(rest)
      lastWrite = Date.now()
      source.say?.(wire.keepAlive)
      watch(keepAliveMs)
    }, ms)
    timer.unref?.()
  }

  if (wire.keepAlive !== '') watch(keepAliveMs)
  const source: BodySource = {
    async next() {
      for (;;) {
        // What was written is taken before the transfer breaks, by the call before.
        if (encoder.state === 'broken') throw new Error('The answer is incomplete.')
        if (encoder.state === 'complete') return undefined
        const given = await read()
        if (left) return undefined
        const text = given ?? encoder.fail(failure)
        if (encoder.state !== 'open') done(true)
        lastWrite = Date.now()
        if (text !== '') return text
      }
    },
    leave: () => done(false),
  }
  return source
}

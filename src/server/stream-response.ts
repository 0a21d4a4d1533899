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

export interface StreamOptions {
  runtime: Runtime
  runId: string
  wire: Wire
  encoder?: EncoderOptions
  /** The client has seen everything below this `seq`, or begins here. Default 0: from the run's start. */
  from?: number
  /** A fresh reader of an old run: finished blocks in few frames, attempts that a crash made void left out. */
  replay?: boolean
  /** What it means for the run when this client leaves. Absent: a follower, whose leaving means nothing. */
  policy?: DisconnectPolicy
  headers?: Record<string, string>
}

const keepAliveMs = 15_000

export async function streamResponse(options: StreamOptions): Promise<Response> {
  const { runId, wire } = options
  const body = createBody(
    wire.createEncoder(options.encoder),
    options,
    options.replay ? await replayFilter(options) : same,
  )
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

async function replayFilter({ runtime, runId }: StreamOptions): Promise<(entries: Entry[]) => Entry[]> {
  const superseded = createSuperseded()
  for await (const batch of runtime.store.log.read(runId)) for (const entry of batch) superseded.note(entry)
  return (entries) => mergeDeltas(entries.filter((entry) => !superseded.has(entry)))
}

function createBody(encoder: Encoder, options: StreamOptions, filter: (entries: Entry[]) => Entry[]) {
  const { runtime, runId, wire, from = 0, policy } = options
  const leave = new AbortController()
  const entries = runtime.store.log.read(runId, 0, leave.signal)[Symbol.asyncIterator]()
  const release = policy === undefined ? undefined : runtime.attach(runId, policy)
  const bytes = new TextEncoder()
  let lastWrite = Date.now()
  let timer: ReturnType<typeof setInterval> | undefined
  let lost: ErrorValue | undefined

  function done(finished: boolean): void {
    clearInterval(timer)
    leave.abort()
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

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        void runtime.lost(runId)?.then((error) => {
          lost = error
          leave.abort()
        })
        if (wire.keepAlive === '') return
        const frame = bytes.encode(wire.keepAlive)
        timer = setInterval(() => {
          if (Date.now() - lastWrite < keepAliveMs || (controller.desiredSize ?? 0) < 0) return
          lastWrite = Date.now()
          controller.enqueue(frame)
        }, keepAliveMs / 3)
        timer.unref?.()
      },
      async pull(controller) {
        for (;;) {
          const { done: ended, value: batch } = await entries.next()
          let text = ended ? '' : encode(batch)
          if (ended && encoder.state === 'open') {
            text = encoder.fail(lost ?? { code: 'closing', message: 'The server is shutting down.' })
          }
          if (text !== '') {
            lastWrite = Date.now()
            controller.enqueue(bytes.encode(text))
          }
          if (encoder.state === 'complete') {
            done(true)
            controller.close()
            return
          }
          if (encoder.state === 'broken' || ended) {
            done(true)
            controller.error(new Error('The answer is incomplete.'))
            return
          }
          if (text !== '') return
        }
      },
      cancel() {
        done(false)
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * What a client may be told before the first byte. A refused key or a rate limit shall be a real 4xx/5xx, so the status
 * waits for the answering model to accept the request; but never longer than a second, because a stream that is silent
 * looks broken.
 */
import type { ErrorValue } from '../part/error.ts'
import type { Runtime } from '../run/runtime.ts'
import { createAnswering } from '../wire/answering.ts'

const patience = 1000

/** `left`: the client did not wait for it. */
export type Acceptance =
  | { kind: 'stream' | 'left' }
  | { kind: 'value'; output: unknown }
  | { kind: 'error'; error: ErrorValue }

export interface AcceptanceOptions {
  /** What other steps do is shown too: the first model that accepts ends the wait. Default: only the answering one. */
  anyStep?: boolean
  /** Some step of the agent streams for certain; otherwise the wait ends only with the answer or the run. */
  streams: boolean
  /** The turn's part of the answer begins with this `seq`. */
  from: number
  signal: AbortSignal
}

export async function awaitAcceptance(
  runtime: Runtime,
  runId: string,
  { streams, from, signal, anyStep = false }: AcceptanceOptions,
): Promise<Acceptance> {
  const leave = new AbortController()
  const both = AbortSignal.any([leave.signal, signal])
  const timer = streams ? setTimeout(() => leave.abort('known'), patience) : undefined
  const answering = createAnswering()
  let lost: ErrorValue | undefined
  const unwatch = runtime.onLost(runId, (error) => {
    lost = error
    leave.abort('known')
  })
  try {
    for await (const batch of runtime.store.log.read(runId, 0, both)) {
      for (const entry of batch) {
        if (entry.type === 'step-start') answering.note(entry)
        if (entry.seq < from) continue
        switch (entry.type) {
          case 'answer-end':
          case 'suspend':
            return { kind: 'stream' }
          case 'run-end':
            if (entry.error !== undefined) return { kind: 'error', error: entry.error }
            return { kind: 'value', output: entry.output }
          case 'run-start':
          case 'step-start':
          case 'retry':
          case 'prompt':
          case 'usage':
          case 'error':
          case 'step-finish':
            break
          default:
            if (anyStep || answering.speaks(entry.step)) return { kind: 'stream' }
        }
      }
    }
    if (lost !== undefined) return { kind: 'error', error: lost }
    return { kind: signal.aborted ? 'left' : 'stream' }
  } finally {
    clearTimeout(timer)
    unwatch()
  }
}

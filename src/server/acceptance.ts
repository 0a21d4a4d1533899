/**
 * What a client may be told before the first byte. A refused key or a rate limit shall be a real 4xx/5xx, so the status
 * waits for the answering model to accept the request; but never longer than a second, because a stream that is silent
 * looks broken.
 */
import type { ErrorValue } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import { createAnswering } from '../wire/answering.ts'

const patience = 1000

export type Acceptance = { kind: 'stream' } | { kind: 'value'; output: unknown } | { kind: 'error'; error: ErrorValue }

/** `streams`: some step of the agent streams for certain; otherwise the wait ends only with the answer or the run. */
export async function awaitAcceptance(
  { log }: Store,
  runId: string,
  { streams, signal }: { streams: boolean; signal: AbortSignal },
): Promise<Acceptance> {
  const leave = new AbortController()
  const both = AbortSignal.any([leave.signal, signal])
  const timer = streams ? setTimeout(() => leave.abort(), patience) : undefined
  const answering = createAnswering()
  try {
    for await (const batch of log.read(runId, 0, both)) {
      for (const entry of batch) {
        switch (entry.type) {
          case 'step-start':
            answering.note(entry)
            break
          case 'answer-end':
          case 'suspend':
            return { kind: 'stream' }
          case 'run-end':
            if (entry.error !== undefined) return { kind: 'error', error: entry.error }
            return { kind: 'value', output: entry.output }
          case 'retry':
          case 'prompt':
          case 'usage':
          case 'error':
          case 'step-finish':
            break
          default:
            if (answering.speaks(entry.step)) return { kind: 'stream' }
        }
      }
    }
    return { kind: 'stream' }
  } finally {
    clearTimeout(timer)
    leave.abort()
  }
}

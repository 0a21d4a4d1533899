/**
 * Decides the response before its first byte. A refused key or a rate limit must be a real 4xx/5xx, so the status waits
 * until the answering model accepts the request, for at most one second, because a silent stream looks broken.
 */
import type { EntryOf } from '../part/entry.ts'
import { toErrorValue, type ErrorValue } from '../part/error.ts'
import type { ResponseHead } from '../part/response-head.ts'
import { isUnder } from '../part/path.ts'
import { kindOf } from '../part/step-kind.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { closingError } from '../runtime/runtime-errors.ts'
import { createAnswering } from '../fold/answering.ts'
import type { RunReader } from './run-reader.ts'

const patience = 1000

/** `left`: the client disconnected first. */
export type Acceptance =
  | { kind: 'stream' }
  | { kind: 'left' }
  | { kind: 'value'; output: unknown }
  | { kind: 'error'; error: ErrorValue }
  /** A step returned a `Response`, and nothing has been sent. */
  | { kind: 'response'; head: ResponseHead }

export interface AcceptanceOptions {
  /** Reads the run from its start or, if that is far, from `from`. Entries peeked here are still delivered to the answer. */
  reader: RunReader
  /** The client also sees other steps, so the first model that accepts ends the wait. Default: only the answering one. */
  showsSteps?: boolean
  /** The agent may stream. If not, the wait has no time limit: it ends with the answer or the run. */
  streams: boolean
  /** First `seq` of this turn. */
  from: number
  signal: AbortSignal
}

export async function awaitAcceptance(
  runtime: Runtime,
  runId: string,
  { reader, streams, from, signal, showsSteps = false }: AcceptanceOptions,
): Promise<Acceptance> {
  const { promise, resolve, reject } = Promise.withResolvers<Acceptance>()
  const left = () => resolve({ kind: 'left' })
  if (signal.aborted) left()
  signal.addEventListener('abort', left)
  const timer = streams ? setTimeout(resolve, patience, { kind: 'stream' }) : undefined
  const unwatch = runtime.onLost(runId, (error) => resolve({ kind: 'error', error }))
  let over = false

  async function look(): Promise<Acceptance> {
    const answering = createAnswering()
    const parallels: string[] = []
    const begin = (entry: EntryOf<'step-start'>) => {
      answering.note(entry)
      if (kindOf(entry) === 'parallel') parallels.push(entry.step)
    }
    if (from > 1) {
      for await (const earlier of runtime.store.log.read(runId, { before: from, types: ['step-start'] }))
        for (const entry of earlier) if (entry.type === 'step-start') begin(entry)
    }
    while (!over) {
      const { done, value } = await reader.peek()
      if (done) break
      for (const entry of value) {
        if (entry.seq < from) continue
        if (entry.type === 'step-start') begin(entry)
        switch (entry.type) {
          case 'answer-end':
          case 'suspend':
            return { kind: 'stream' }
          case 'run-end':
            if (entry.error !== undefined) return { kind: 'error', error: entry.error }
            return { kind: 'value', output: entry.output }
          case 'step-start': {
            const { step, head } = entry
            // In a parallel step other answers follow, so the head of one does not apply to all.
            const isAlone = !parallels.some((path) => isUnder(step, path))
            if (head !== undefined && isAlone && answering.has(step)) return { kind: 'response', head }
            break
          }
          case 'run-start':
          case 'retry':
          case 'prompt':
          case 'usage':
          case 'error':
          case 'step-finish':
            break
          default:
            if (showsSteps || answering.has(entry.step)) return { kind: 'stream' }
        }
      }
    }
    // The log ended before the run did: the server is shutting down.
    return { kind: 'error', error: toErrorValue(closingError()) }
  }

  look().then(resolve, reject)
  try {
    return await promise
  } finally {
    over = true
    clearTimeout(timer)
    unwatch()
    signal.removeEventListener('abort', left)
  }
}

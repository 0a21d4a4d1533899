/** Decides about a run when the last client that reads its answer here disconnects. Log followers do not count. */
import { ownValue } from '../part/own-value.ts'
import type { DisconnectPolicy, Pipeline } from '../pipeline/pipeline.ts'

/** The clients that read the answer of one run here. */
export interface Readers {
  count: number
  timer: ReturnType<typeof setTimeout> | undefined
}

/** A client that starts a run with one of these protocols also reads its answer. */
export const clientProtocols: ReadonlySet<string> = new Set(['ag-ui', 'ui', 'text', 'openai', 'responses', 'messages'])

/** ms for which the run of a client that has left goes on. Coding CLIs ask again after seconds, and get the rest. */
const returnTimes: Readonly<Record<string, number>> = { responses: 30_000, messages: 30_000 }

/** The policy of a run that its client reads. A client of OpenAI's Chat Completions cannot return to its answer. */
export function startersPolicy(pipeline: Pipeline | undefined, protocol: string, durable: boolean): DisconnectPolicy {
  const canReturn = durable && protocol !== 'openai'
  return pipeline?.onDisconnect ?? (canReturn ? { cancelAfter: ownValue(returnTimes, protocol) ?? 15_000 } : 'cancel')
}

export const disconnected = 'All readers of the answer have disconnected.'

/**
 * Adds a reader to a run. Call the returned function when it disconnects, with `finished: true` if it read to the answer's end. `onLeft`: the
 * policy requests a stop. `onEmpty`: no reader is left. When the run is suspended or ends, {@link closeReaders} removes its readers.
 */
export function attachReader(
  run: { readers?: Readers | undefined },
  policy: DisconnectPolicy,
  onLeft: (reason: string) => void,
  onEmpty: () => void,
): (how?: { finished?: boolean }) => void {
  const readers = (run.readers ??= { count: 0, timer: undefined })
  clearTimeout(readers.timer)
  readers.count++
  let left = false

  function finish(stops: boolean): void {
    closeReaders(run)
    onEmpty()
    if (stops) onLeft(disconnected)
  }

  return ({ finished = false } = {}) => {
    if (left) return
    left = true
    readers.count--
    if (readers.count > 0 || run.readers !== readers) return
    if (finished || policy === 'detach' || policy === 'cancel') return finish(!finished && policy === 'cancel')
    readers.timer = setTimeout(finish, policy.cancelAfter, true)
    readers.timer.unref?.()
  }
}

export function closeReaders(run: { readers?: Readers | undefined }): void {
  clearTimeout(run.readers?.timer)
  run.readers = undefined
}

import type { Entry } from '../part/entry.ts'
import type { Log } from '../part/log.ts'

export interface AwaitOptions {
  /** Only entries with a greater `seq`. */
  after?: number
  /** Maximum wait in ms. */
  ms?: number
  signal?: AbortSignal
}

/** Follows a run's log until an entry matches. Undefined if none comes in time, or before the signal aborts. */
export async function awaitEntry(
  log: Log,
  run: string,
  matches: (entry: Entry) => boolean,
  { after = 0, ms, signal }: AwaitOptions = {},
): Promise<Entry | undefined> {
  const leave = new AbortController()
  const abort = () => leave.abort()
  const timer = ms === undefined ? undefined : setTimeout(abort, ms)
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort)
  try {
    for await (const batch of log.read(run, { after, signal: leave.signal })) {
      const found = batch.find(matches)
      if (found !== undefined) return found
    }
    return undefined
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

/** Does again what failed because the connection broke, or because the server shuts down: another one may answer. For what may be done twice. */
import { pause } from '../async/pause.ts'
import type { MillraceError } from '../part/error.ts'

const mostTries = 5

/** The longest that a server can make it wait between two tries, in ms. */
const mostWait = 2000

/** About 1.5 s of tries, or as the server says when to try again. Rejects with the last failure. */
export async function again<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  let wait: number
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      const { code, retryAfter = 0 } = error as Partial<MillraceError>
      wait = Math.max(100 * 2 ** (tries - 1), Math.min(mostWait, retryAfter * 1000))
      const mayWork = code === 'connection-lost' || code === 'closing'
      if (!mayWork || tries === mostTries || signal?.aborted) throw error
    }
    await pause(wait, signal)
  }
}

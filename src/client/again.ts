/** Does again what failed because the connection broke. For what may be done twice. */
import { pause } from '../async/pause.ts'
import type { MillraceError } from '../part/error.ts'

const mostTries = 5

/** About 1.5 s of tries. Rejects with the last failure. */
export async function again<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      const { code } = error as Partial<MillraceError>
      if (code !== 'connection-lost' || tries === mostTries || signal?.aborted) throw error
    }
    await pause(100 * 2 ** (tries - 1), signal)
  }
}

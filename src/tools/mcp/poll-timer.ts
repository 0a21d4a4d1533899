/** How long to wait between two polls of a task. */
import { unlessStopped } from './fault.ts'

const shortest = 250
const longest = 60_000
/** Where the server says nothing. */
const usual = 2000

/** ms. `wanted`: the server's `pollIntervalMs`. */
export function pollDelay(wanted: number | undefined): number {
  if (wanted === undefined || !Number.isFinite(wanted)) return usual
  return Math.min(longest, Math.max(shortest, wanted))
}

/** ms until a server that cannot be reached is asked again. `failures`: in a row, from 1. */
export function retryDelay(failures: number): number {
  return Math.min(longest, shortest * 2 ** Math.min(failures, 10))
}

/** An object, so that tests have a clock of their own. */
export const pollTimer = {
  /** Rejects with the reason of the signal. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
    try {
      await unlessStopped(over, signal)
    } finally {
      clearTimeout(timer)
    }
  },
}

/** Tracks who reads a run's answer and applies the disconnect policy when the last one leaves. Log followers do not count. */
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'

export interface Presence {
  /** Adds a reader. Call the returned function when the reader leaves, with `finished: true` if it read to the answer's end. */
  attach(run: string, policy: DisconnectPolicy): (how?: { finished?: boolean }) => void
  /** Call it when the run has ended or is suspended: there is nothing left to stop. */
  forget(run: string): void
}

export function createPresence(stop: (run: string, reason: string) => void): Presence {
  const present = new Map<string, { readers: number; timer: ReturnType<typeof setTimeout> | undefined }>()
  const reason = 'All readers of the answer have disconnected.'

  function forget(run: string): void {
    clearTimeout(present.get(run)?.timer)
    present.delete(run)
  }

  return {
    forget,
    attach(run, policy) {
      const entry = present.get(run) ?? { readers: 0, timer: undefined }
      present.set(run, entry)
      clearTimeout(entry.timer)
      entry.readers++
      let left = false
      return ({ finished = false } = {}) => {
        if (left) return
        left = true
        entry.readers--
        if (entry.readers > 0 || present.get(run) !== entry) return
        if (finished || policy === 'detach') {
          forget(run)
        } else if (policy === 'cancel') {
          forget(run)
          stop(run, reason)
        } else {
          entry.timer = setTimeout(() => {
            forget(run)
            stop(run, reason)
          }, policy.cancelAfter)
          entry.timer.unref?.()
        }
      }
    },
  }
}

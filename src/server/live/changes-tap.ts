/** One cursor into the changes of all runs, shared by the monitors of this process. It is open while it has listeners. */
import type { Change, Log } from '../../part/log.ts'

export interface TapListener {
  onChanges(changes: readonly Change[]): void
  /** The store was closed or has failed: no more changes come. */
  onEnd(): void
}

export interface ChangesTap {
  /** Subscribes to later changes. Returns a function that unsubscribes. */
  join(listener: TapListener): () => void
}

export function createChangesTap(log: Log, onError: (error: unknown) => void): ChangesTap {
  const listeners = new Set<TapListener>()
  let leave: AbortController | undefined

  async function pump({ signal }: AbortController): Promise<void> {
    try {
      for await (const changes of log.changes({ after: await log.position(), signal })) {
        if (signal.aborted) return
        for (const listener of listeners) listener.onChanges(changes)
      }
    } catch (error) {
      if (!signal.aborted) onError(error)
    }
    if (signal.aborted) return
    leave = undefined
    const left = [...listeners]
    listeners.clear()
    for (const { onEnd } of left) onEnd()
  }

  return {
    join(listener) {
      listeners.add(listener)
      if (leave === undefined) void pump((leave = new AbortController()))
      return () => {
        listeners.delete(listener)
        if (listeners.size > 0) return
        leave?.abort()
        leave = undefined
      }
    },
  }
}

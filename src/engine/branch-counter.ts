import type { EntryOf } from '../part/entry.ts'
import type { Scope } from './scope.ts'
import type { RunState } from './state.ts'
import { LazyMap } from '../fold/lazy-map.ts'

/**
 * Counts the branches of a run that can make progress. When the last of them waits for a client, the run is suspended.
 *
 * Everything is synchronous: a branch must count as running from the moment its reply arrives. Otherwise a run could be suspended after its reply
 * was consumed.
 */
export interface BranchCounter {
  /** Settles when all tasks have settled, or when `abandoned` does. After that the remaining tasks no longer count. */
  fork(tasks: (() => Promise<void>)[], abandoned?: Promise<void>): Promise<void>
  /** A branch starts to wait for a client. */
  block(): void
  /** A branch continues. */
  unblock(): void
}

export function createBranchCounter(onAllParked: () => void): BranchCounter {
  let moving = 1

  function park(): void {
    moving--
    if (moving === 0) onAllParked()
  }

  return {
    block: park,
    unblock() {
      moving++
    },
    async fork(tasks, abandoned) {
      if (tasks.length === 0) return
      moving += tasks.length - 1
      let left = tasks.length
      let over = false
      const settling = Promise.allSettled(
        tasks.map(async (task) => {
          try {
            await task()
          } finally {
            // The last branch to end continues after the fork, so it still counts.
            if (!over && --left > 0) park()
          }
        }),
      )
      const settled = await (abandoned === undefined ? settling : Promise.race([settling, abandoned]))
      over = true
      if (left > 1) moving -= left - 1
      for (const result of settled ?? []) if (result.status === 'rejected') throw result.reason
    },
  }
}

/**
 * The point at which a run is released to its next owner: before a step whose start is not recorded yet. Started steps continue to their end, so
 * that the next owner has nothing to reset.
 */
export interface Gate {
  /**
   * Undefined: continue. Otherwise a promise that rejects when the run is released. Call it before a new step, and await it only if it is defined.
   */
  pass(): Promise<never> | undefined
  /** Whether a branch waits here. */
  holds(): boolean
  /** Unwinds the waiting branches. */
  rejectAll(reason: () => unknown): void
}

/** `isLeaving`: whether to release the run. */
export function createGate(isLeaving: () => boolean, strands: () => Pick<BranchCounter, 'block'>): Gate {
  let held: PromiseWithResolvers<never> | undefined
  return {
    pass() {
      if (!isLeaving()) return undefined
      held ??= Promise.withResolvers()
      strands().block()
      return held.promise
    },
    holds: () => held !== undefined,
    rejectAll(reason) {
      held?.reject(reason())
    },
  }
}

/** The branches of an active run that wait for a client's reply. */
export interface PendingRequests {
  request: Scope['request']
  /** Continues the branch whose request ends with this entry. */
  resolve(response: EntryOf<'response'>): void
  /** Unwinds all waiting branches. `reason` is called if there are any: an error with its stack costs more than a short step. */
  rejectAll(reason: () => unknown): void
}

interface RequestOptions {
  state: RunState
  strands: BranchCounter
  /** The signal of the run. */
  signal: AbortSignal
  emit: Scope['emit']
}

export function createPendingRequests({ state, strands, signal, emit }: RequestOptions): PendingRequests {
  const waiting = new LazyMap<string, PromiseWithResolvers<EntryOf<'response'>>>()
  return {
    async request(path, request, stop) {
      stop.throwIfAborted()
      const { requestId } = request
      const answer = Promise.withResolvers<EntryOf<'response'>>()
      waiting.set(requestId, answer)
      if (!state.open.requests.has(requestId)) emit(path, { type: 'request', ...request })
      const stopAlone = () => {
        // Only for a branch or step that is stopped alone: the run's end rejects all requests itself.
        if (signal.aborted || !waiting.delete(requestId)) return
        strands.unblock()
        answer.reject(stop.reason)
      }
      if (stop !== signal) stop.addEventListener('abort', stopAlone, { once: true })
      strands.block()
      return answer.promise.finally(() => stop.removeEventListener('abort', stopAlone))
    },
    resolve(response) {
      const waiter = waiting.get(response.requestId)
      if (waiter === undefined) return
      waiting.delete(response.requestId)
      strands.unblock()
      waiter.resolve(response)
    },
    rejectAll(reason) {
      if (waiting.size === 0) return
      const error = reason()
      for (const { reject } of waiting.values()) reject(error)
      waiting.clear()
    },
  }
}

import type { EntryOf } from '../part/entry.ts'
import { LazyMap } from '../fold/lazy-map.ts'
import type { BranchCounter } from './branch-counter.ts'
import type { Scope } from './scope.ts'
import type { RunState } from './state.ts'

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
  branches: BranchCounter
  /** The signal of the run. */
  signal: AbortSignal
  emit: Scope['emit']
}

export function createPendingRequests({ state, branches, signal, emit }: RequestOptions): PendingRequests {
  const waiting = new LazyMap<string, PromiseWithResolvers<EntryOf<'response'>> & { blocks: boolean }>()
  return {
    async request(path, request, stop, how) {
      stop.throwIfAborted()
      const { requestId } = request
      const blocks = how !== 'holds'
      const answer = { ...Promise.withResolvers<EntryOf<'response'>>(), blocks }
      waiting.set(requestId, answer)
      if (!state.open.requests.has(requestId)) emit(path, { type: 'request', ...request })
      const stopAlone = () => {
        // Only for a branch or step that is stopped alone: the run's end rejects all requests itself.
        if (signal.aborted || !waiting.delete(requestId)) return
        if (blocks) branches.unblock()
        answer.reject(stop.reason)
      }
      if (stop !== signal) stop.addEventListener('abort', stopAlone, { once: true })
      if (blocks) branches.block()
      return answer.promise.finally(() => stop.removeEventListener('abort', stopAlone))
    },
    resolve(response) {
      const waiter = waiting.get(response.requestId)
      if (waiter === undefined) return
      waiting.delete(response.requestId)
      if (waiter.blocks) branches.unblock()
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

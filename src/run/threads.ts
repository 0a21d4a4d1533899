/**
 * One active run per thread. Runs of a thread form a chain in the store: whoever first posts `after:<previous run>` follows
 * it, so that of many requests that arrive at once each gets its own place, whichever process they reach.
 */
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import type { BusyPolicy } from '../pipeline/pipeline.ts'

export interface ThreadGate {
  /**
   * Takes a place in the thread behind its newest run; throws `thread-busy` (409) when the policy is `reject` and one is
   * active. The run may begin when `wait` settles: at once, or when the run before it has ended (`interrupt` stops it
   * first). A suspended run is always stopped: the thread has moved on without its answer.
   */
  claim(threadId: string, run: string, policy: BusyPolicy): Promise<Place>
}

export interface Place {
  /** The run before; absent in a new thread. */
  previous?: string
  /** Settles early, without throwing, when the signal aborts. */
  wait(signal: AbortSignal): Promise<void>
}

export interface ThreadGateOptions {
  store: Store
  stop(run: string, reason: string): Promise<void>
  /** Whether a run that claimed its place, but has no entry yet, is about to begin in this process. */
  isStarting(run: string): boolean
}

export function createThreadGate({ store, stop, isStarting }: ThreadGateOptions): ThreadGate {
  const { log, runs } = store

  async function active(run: string): Promise<'running' | 'suspended' | undefined> {
    const row = await runs.get(run)
    if (row === undefined) return isStarting(run) ? 'running' : undefined
    return row.status === 'running' || row.status === 'suspended' ? row.status : undefined
  }

  async function ended(run: string, signal: AbortSignal): Promise<void> {
    const row = await runs.get(run)
    // The last stored entry is read again: it may be the end itself.
    for await (const batch of log.read(run, Math.max(0, (row?.lastSeq ?? 0) - 1), signal)) {
      if (batch.at(-1)?.type === 'run-end') return
    }
  }

  async function wait(previous: string, policy: BusyPolicy, signal: AbortSignal): Promise<void> {
    const status = await active(previous)
    if (status === undefined) return
    if (status === 'suspended') await stop(previous, 'The conversation went on without an answer.')
    else if (policy === 'interrupt') await stop(previous, 'A new message interrupted the run.')
    await ended(previous, signal)
  }

  return {
    async claim(threadId, run, policy) {
      let previous = (await runs.list({ threadId, limit: 1 }))[0]?.id ?? ''
      for (;;) {
        if (policy === 'reject' && previous !== '' && (await active(previous)) === 'running')
          throw busy(threadId, previous)
        const { first, message } = await log.post(`thread:${threadId}`, `after:${previous}`, { run })
        if (first) break
        previous = (message as { run: string }).run
      }
      if (previous === '') return { wait: async () => undefined }
      return { previous, wait: (signal) => wait(previous, policy, signal) }
    },
  }
}

function busy(threadId: string, run: string): MillraceError {
  const message = `Thread ${threadId} is busy with run ${run}; wait for its end, or stop it.`
  return new MillraceError('thread-busy', message, { status: 409 })
}

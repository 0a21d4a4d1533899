/**
 * One active run per thread. Runs of a thread form a chain in the store: whoever first posts `after:<previous run>` follows
 * it, so that of many requests that arrive at once each gets its own place, whichever process they reach.
 */
import { MillraceError } from '../part/error.ts'
import type { Log, Store } from '../part/log.ts'
import type { BusyPolicy } from '../pipeline/pipeline.ts'

export interface ThreadGate {
  /**
   * Takes a place in the thread behind its newest run; throws `thread-busy` (409) when the policy is `reject` and one is
   * active. The run may begin when `wait` settles: at once, or when all runs before it have ended (`interrupt` stops them
   * first). A suspended run is always stopped: the thread has moved on without its answer.
   */
  claim(threadId: string, run: string, policy: BusyPolicy): Promise<Place>
  /** After a crash: the `wait` of a run that had its place before. */
  rejoin(threadId: string, run: string): Promise<Place['wait']>
}

export interface Place {
  /** The run before; absent in a new thread. It may never have begun, when its process died too early. */
  previous?: string
  /** Settles early, without throwing, when the signal aborts. */
  wait(signal: AbortSignal): Promise<void>
}

export interface ThreadGateOptions {
  store: Store
  stop(run: string, reason: string): Promise<void>
  /** For a run that claimed its place and has no entry yet: when it has one, or will never have one. */
  beginning(run: string): Promise<void> | undefined
}

const unanswered = 'The conversation went on without an answer.'

export function createThreadGate({ store, stop, beginning }: ThreadGateOptions): ThreadGate {
  const { log, runs } = store
  // Settled when all runs before have ended: a run that was stopped while it waited is over before they are.
  const places = new Map<string, Promise<void>>()

  async function active(run: string): Promise<'running' | 'suspended' | undefined> {
    const row = await runs.get(run)
    if (row === undefined) return beginning(run) === undefined ? undefined : 'running'
    return row.status === 'running' || row.status === 'suspended' ? row.status : undefined
  }

  async function ended(run: string): Promise<void> {
    const row = await runs.get(run)
    // The last stored entry is read again: it may be the end itself, or a suspension that only we can end.
    const from = Math.max(0, (row?.lastSeq ?? 0) - 1)
    for await (const batch of log.read(run, from, new AbortController().signal)) {
      const last = batch.at(-1)?.type
      if (last === 'run-end') return
      if (last === 'suspend' && (await active(run)) === 'suspended') await stop(run, unanswered)
    }
  }

  async function passed(previous: string, policy: BusyPolicy): Promise<void> {
    await beginning(previous)?.catch(() => undefined)
    const status = await active(previous)
    if (status !== undefined) {
      if (status === 'suspended') await stop(previous, unanswered)
      else if (policy === 'interrupt') await stop(previous, 'A new message interrupted the run.')
      await ended(previous)
    }
    await places.get(previous)
  }

  function take(run: string, previous: string, policy: BusyPolicy): Place['wait'] {
    const place = passed(previous, policy)
    const clear = () => void (places.get(run) === settled && places.delete(run))
    const settled: Promise<void> = place.then(clear, clear)
    places.set(run, settled)
    return (signal) => Promise.race([place, aborted(signal)])
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
      return { previous, wait: take(run, previous, policy) }
    },
    async rejoin(threadId, run) {
      const previous = await predecessor(log, threadId, run)
      return previous === undefined ? async () => undefined : take(run, previous, 'queue')
    },
  }
}

/** The run that a run of a thread follows, also when that one left nothing but its place. */
export async function predecessor(log: Log, threadId: string, run: string): Promise<string | undefined> {
  for await (const { key, message } of log.inbox(`thread:${threadId}`)) {
    if (!key.startsWith('after:') || (message as { run: string }).run !== run) continue
    return key.slice('after:'.length) || undefined
  }
  return undefined
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

function busy(threadId: string, run: string): MillraceError {
  const message = `Thread ${threadId} is busy with run ${run}; wait for its end, or stop it.`
  return new MillraceError('thread-busy', message, { status: 409 })
}

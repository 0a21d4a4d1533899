/**
 * Allows one active run per thread. A thread's runs form a chain in the store: the first run that posts `after:<previous run>`
 * is the next one. So concurrent requests each get a position, even in different processes.
 */
import { MillraceError } from '../part/error.ts'
import type { Log, Store } from '../part/log.ts'
import type { BusyPolicy } from '../pipeline/pipeline.ts'

export interface ThreadGate {
  /**
   * Appends a run to the thread. Throws `thread-busy` (409) if the policy is `reject` and a run is active. The run may start when
   * `wait` settles: at once, or when all runs before it have ended (`interrupt` stops them first). A suspended run is always
   * stopped, because the conversation has continued without its answer.
   */
  claim(threadId: string, run: string, policy: BusyPolicy): Promise<Place>
  /** After a crash: the `wait` of a run that already has its position. */
  rejoin(threadId: string, run: string): Promise<Place['wait']>
}

export interface Place {
  /** The previous run; undefined in a new thread. If its process crashed early, that run may have no entries. */
  previous?: string
  /** Settles early, without throwing, when the signal aborts. */
  wait(signal: AbortSignal): Promise<void>
}

export interface ThreadGateOptions {
  store: Store
  stop(run: string, reason: string): Promise<void>
  /** For a run with a position but without entries: settles when it has one, or when it will never have one. */
  beginning(run: string): Promise<void> | undefined
}

const unanswered = 'The conversation continued without an answer.'

export function createThreadGate({ store, stop, beginning }: ThreadGateOptions): ThreadGate {
  const { log, runs } = store
  // Each settles when all runs before it have ended. A run that was stopped while it waited ends before that.
  const places = new Map<string, Promise<void>>()

  async function active(run: string): Promise<'running' | 'suspended' | undefined> {
    const row = await runs.get(run)
    if (row === undefined) return beginning(run) === undefined ? undefined : 'running'
    return row.status === 'running' || row.status === 'suspended' ? row.status : undefined
  }

  async function ended(run: string): Promise<void> {
    const row = await runs.get(run)
    // Reads the last stored entry again: it may be the end, or a suspension that we must stop.
    const after = Math.max(0, (row?.lastSeq ?? 0) - 1)
    for await (const batch of log.read(run, { after, signal: new AbortController().signal })) {
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

/** The run before a run in its thread, even if that one has no entries. */
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
  const message = `Thread ${threadId} is busy with run ${run}. Wait until it ends, or stop it.`
  return new MillraceError('thread-busy', message, { status: 409 })
}

/**
 * Requests that a client repeats after a failure. Coding CLIs do so by loops of their own, whatever the status and the headers say, and a second
 * run would do again what the tools of the first have done. So for a minute the same request gets the end that was recorded.
 *
 * Known to this process only: clients repeat over the connection that they have.
 */
import type { Turned } from '../../runtime/continue.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { hashText } from '../http/hash-text.ts'
import { hasActed } from './openai-acted.ts'

/** ms after its end in which a failed run stands for a request. */
const standsFor = 60_000
/** Requests that are kept in mind. */
const mostKept = 10_000

/** Digest → run. */
const started = new WeakMap<Runtime, Map<string, string>>()

export interface Repeat {
  /** The run that has failed for the same request. */
  failed(): Promise<Turned | undefined>
  started(runId: string): Promise<void>
}

export function createRepeat(runtime: Runtime, request: Request, body: Record<string, unknown>): Repeat {
  const { url, headers } = request
  const caller = ['authorization', 'x-thread-id', 'x-session-id', 'x-millrace-extensions'].map((name) =>
    headers.get(name),
  )
  const digest = hashText(JSON.stringify([url, ...caller, body]))
  const runs = started.get(runtime) ?? new Map<string, string>()
  started.set(runtime, runs)

  return {
    async failed() {
      if (runs.size === 0) return undefined
      const id = runs.get(await digest)
      const row = id === undefined ? undefined : await runtime.store.runs.get(id)
      if (row === undefined || (row.status !== 'failed' && row.status !== 'timed-out')) return undefined
      const isOld = runtime.threadRule().now >= (row.endedAt ?? 0) + standsFor
      if (isOld || !(await hasActed(runtime.store.log, row.id))) return undefined
      const run = await runtime.open(row.id)
      return run && { run, how: 'joined', from: 0 }
    },
    async started(runId) {
      const key = await digest
      runs.delete(key)
      runs.set(key, runId)
      const [oldest] = runs.keys()
      if (runs.size > mostKept && oldest !== undefined) runs.delete(oldest)
    },
  }
}

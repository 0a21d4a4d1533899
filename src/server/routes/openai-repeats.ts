/**
 * Requests that a client repeats after a failure. Coding CLIs do so by loops of their own, whatever the status and the headers say, and a second
 * run would do again what the tools of the first have done. So for a minute the same request gets the end that was recorded.
 *
 * Known to this process only: clients repeat over the connection that they have.
 */
import type { Turned } from '../../runtime/continue.ts'
import type { Run, Runtime } from '../../runtime/runtime.ts'
import { hashText } from '../http/hash-text.ts'
import { hasActed } from './openai-acted.ts'

/** ms after its end in which a failed run stands for a request. */
const standsFor = 60_000
/** Requests that are kept in mind. */
const mostKept = 10_000

interface Asked {
  run: string
  /** Of the request. It is made when a request comes that may be the same, or when the run fails: the rest need none. */
  digest: () => Promise<string>
}

/** How a request looks at a glance → the last one that looks so, while its run goes on or after it has failed. */
const askedOf = new WeakMap<Runtime, Map<string, Asked>>()

export interface Repeat {
  /** The run that has failed for the same request. */
  failed(): Promise<Turned | undefined>
  started(run: Run): void
}

export function createRepeat(runtime: Runtime, request: Request, body: Record<string, unknown>): Repeat {
  const { url, headers } = request
  const caller = ['authorization', 'x-thread-id', 'x-session-id', 'x-millrace-extensions'].map((name) =>
    headers.get(name),
  )
  const { messages, tools, prompt } = body
  const list: unknown[] = Array.isArray(messages) ? messages : [prompt]
  const last = JSON.stringify(list.at(-1)) ?? ''
  // A title call has the same messages, but other tools or another system prompt.
  const system = (list[0] as { content?: unknown } | null | undefined)?.content
  const sizes = [list.length, last.length, sizeOf(system), sizeOf(tools), Object.keys(body).length]
  const glance = JSON.stringify([url, ...caller, body['model'], ...sizes, last.slice(0, 500)])
  const digest = once(() => hashText(JSON.stringify([url, ...caller, body])))
  const asked = askedOf.get(runtime) ?? new Map<string, Asked>()
  askedOf.set(runtime, asked)

  return {
    async failed() {
      const before = asked.get(glance)
      if (before === undefined || (await before.digest()) !== (await digest())) return undefined
      const row = await runtime.store.runs.get(before.run)
      if (row === undefined || (row.status !== 'failed' && row.status !== 'timed-out')) return undefined
      const isOld = runtime.threadRule().now >= (row.endedAt ?? 0) + standsFor
      if (isOld || !(await hasActed(runtime.store.log, row.id))) return undefined
      const run = await runtime.open(row.id)
      return run && { run, how: 'joined', from: 0 }
    },
    started({ id, result }) {
      const own: Asked = { run: id, digest }
      asked.delete(glance)
      asked.set(glance, own)
      const [oldest] = asked.keys()
      if (asked.size > mostKept && oldest !== undefined) asked.delete(oldest)
      void result.then(({ outcome }) => {
        if (asked.get(glance) !== own) return
        if (outcome !== 'failed' && outcome !== 'timed-out') return void asked.delete(glance)
        own.digest = always(digest())
      })
    },
  }
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' || Array.isArray(value) ? value.length : 0
}

/** Apart from what made it: the request is let go. */
function always<T>(value: T): () => T {
  return () => value
}

function once<T>(make: () => T): () => T {
  let made: [T] | undefined
  return () => (made ??= [make()])[0]
}

/** Runs SQL that only reads, in a worker thread with its own connection: however long it takes, nothing else waits. */
import { Worker } from 'node:worker_threads'
import { MillraceError } from '../../part/error.ts'
import type { QueryOptions, QueryResult } from '../../part/records.ts'
import { storeClosed } from '../store-error.ts'
import { queryThread } from './query-thread.ts'
import { badQuery, checkStatement } from './statement-text.ts'

export interface Queries {
  run(sql: string, options?: QueryOptions): Promise<QueryResult>
  close(): Promise<void>
}

type Reply = { id: number; result: QueryResult } | { id: number; fault: string }

/** `url`: of the file, to read it. */
export function createQueries(url: () => string): Queries {
  const pending = new Map<number, PromiseWithResolvers<QueryResult>>()
  let worker: Worker | undefined
  let ids = 0
  /** The queries before this one: the worker runs one at a time, and the time of each begins with it. */
  let turn: Promise<unknown> = Promise.resolve()
  let closed = false

  function start(): Worker {
    const started = new Worker(queryThread, { workerData: url(), execArgv: [] })
    started.on('message', ended).on('error', failed)
    return started
  }

  function ended(reply: Reply): void {
    const waiting = pending.get(reply.id)
    pending.delete(reply.id)
    if (pending.size === 0) worker?.unref()
    if ('result' in reply) waiting?.resolve(reply.result)
    else waiting?.reject(badQuery(/readonly/u.test(reply.fault) ? 'Queries only read.' : `${reply.fault}.`))
  }

  function failed(cause: Error): void {
    worker = undefined
    const error = new MillraceError('store-failed', 'cannot query the store: the store failed', { status: 503, cause })
    for (const each of pending.values()) each.reject(error)
    pending.clear()
  }

  async function ask(message: object, timeoutMs: number): Promise<QueryResult> {
    if (closed) throw storeClosed('run a query')
    const waiting = Promise.withResolvers<QueryResult>()
    const id = ++ids
    pending.set(id, waiting)
    const running = (worker ??= start())
    running.ref()
    running.postMessage({ id, ...message })
    const timer = setTimeout(
      () => {
        pending.delete(id)
        // Nothing else stops a statement. The next query starts another thread.
        if (worker === running) worker = undefined
        const seconds = timeoutMs / 1000
        waiting.reject(badQuery(`The query was stopped after ${seconds} s. Narrow it down, or raise timeoutMs.`))
        void running.terminate()
      },
      Math.min(timeoutMs, 2 ** 31 - 1),
    )
    try {
      return await waiting.promise
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async run(sql, { limit = 10_000, timeoutMs = 30_000, parameters = {} } = {}) {
      const names = checkStatement(sql)
      const missing = names.filter((name) => !Object.hasOwn(parameters, name))
      if (missing.length > 0) throw badQuery(`The query needs a value for :${missing.join(', :')}.`)
      const unknown = Object.keys(parameters).filter((name) => !names.includes(name))
      if (unknown.length > 0) throw badQuery(`The query has no parameter :${unknown.join(', :')}.`)
      if (!(timeoutMs > 0)) throw badQuery('timeoutMs must be a number of ms greater than 0.')
      const asked = turn.then(() => ask({ sql, parameters, limit }, timeoutMs))
      turn = asked.catch(() => undefined)
      return asked
    },
    async close() {
      closed = true
      for (const each of pending.values()) each.reject(storeClosed('run a query'))
      pending.clear()
      await worker?.terminate()
    },
  }
}

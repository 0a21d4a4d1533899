/**
 * Reads that may take long: SQL, search, and lists of runs by words. They run in threads with connections of their own, so that none blocks the event
 * loop. There are two: a list never waits behind statistics or somebody's SQL.
 */
import { Worker } from 'node:worker_threads'
import type { SQLInputValue } from 'node:sqlite'
import { MillraceError } from '../../part/error.ts'
import type { QueryOptions, QueryResult } from '../../part/records.ts'
import { storeClosed } from '../store-error.ts'
import type { ReadJob, ReadReply, ReadResults } from './read-thread.ts'

export interface Queries {
  run(sql: string, options?: QueryOptions): Promise<QueryResult>
  /** Lists and searches do not wait for statistics. */
  ask<Kind extends Exclude<ReadJob['kind'], 'query'>>(job: Extract<ReadJob, { kind: Kind }>): Promise<ReadResults[Kind]>
  close(): Promise<void>
}

type Asked = PromiseWithResolvers<ReadResults[ReadJob['kind']]> & { kind: ReadJob['kind'] }

/** In ms. Statistics of a long time are read row by row before its hours are kept. */
const [usualTimeout, statsTimeout] = [30_000, 600_000]

/** `url`: of the file, for reading. */
export function createQueries(url: () => string): Queries {
  const [short, long] = [createLane(url), createLane(url)]
  return {
    async run(sql, { limit = 10_000, timeoutMs = usualTimeout, parameters = {}, isShort = false } = {}) {
      const names = checkStatement(sql)
      const missing = names.filter((name) => !Object.hasOwn(parameters, name))
      if (missing.length > 0) throw badQuery(`The query needs a value for :${missing.join(', :')}.`)
      const unknown = Object.keys(parameters).filter((name) => !names.includes(name))
      if (unknown.length > 0) throw badQuery(`The query has no parameter :${unknown.join(', :')}.`)
      if (!(timeoutMs > 0)) throw badQuery('timeoutMs must be a number of ms greater than 0.')
      const values = parameters as Record<string, SQLInputValue>
      const job = { kind: 'query', sql, parameters: values, limit } as const
      return (await (isShort ? short : long).ask(job, timeoutMs)) as QueryResult
    },
    ask: async <Kind extends ReadJob['kind']>(job: Extract<ReadJob, { kind: Kind }>) => {
      const isShort = job.kind === 'list' || job.kind === 'search'
      return (await (isShort ? short.ask(job, usualTimeout) : long.ask(job, statsTimeout))) as ReadResults[Kind]
    },
    async close() {
      await Promise.all([short.close(), long.close()])
    },
  }
}

function failure(options: { detail?: string; cause?: unknown }): MillraceError {
  return new MillraceError('store-failed', 'cannot query the store: the store failed', { status: 503, ...options })
}

/** A thread that runs one job at a time. It starts with the first. */
function createLane(url: () => string) {
  const pending = new Map<number, Asked>()
  let worker: Worker | undefined
  let ids = 0
  /** The earlier jobs: the time of a job starts with its turn. */
  let turn: Promise<unknown> = Promise.resolve()
  let closed = false

  async function start(): Promise<Worker> {
    // Its source is long, and a short command asks nothing.
    const { queryThread } = await import('./query-thread.ts')
    if (closed) throw storeClosed('run a query')
    const started = new Worker(queryThread, { workerData: url(), execArgv: [] })
    started.on('message', ended).on('error', failed)
    return started
  }

  function ended(reply: ReadReply): void {
    const waiting = pending.get(reply.id)
    pending.delete(reply.id)
    if (pending.size === 0) worker?.unref()
    if ('result' in reply) waiting?.resolve(reply.result)
    else if ('error' in reply) waiting?.reject(new MillraceError(reply.error.code, reply.error.message, reply.error))
    else if (waiting?.kind === 'query')
      waiting.reject(badQuery(/readonly/u.test(reply.fault) ? 'Queries only read.' : `${reply.fault}.`))
    // Of what we ask ourselves, the database is to blame for whatever is wrong.
    else waiting?.reject(failure({ detail: reply.fault }))
  }

  function failed(cause: Error): void {
    worker = undefined
    const error = failure({ cause })
    for (const each of pending.values()) each.reject(error)
    pending.clear()
  }

  async function begin(job: ReadJob, timeoutMs: number): Promise<ReadResults[ReadJob['kind']]> {
    if (closed) throw storeClosed('run a query')
    const running = (worker ??= await start())
    const waiting: Asked = { ...Promise.withResolvers(), kind: job.kind }
    const id = ++ids
    pending.set(id, waiting)
    running.ref()
    running.postMessage({ id, job })
    const timer = setTimeout(
      () => {
        pending.delete(id)
        // Only termination stops a statement. The next query starts another thread.
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
    ask(job: ReadJob, timeoutMs: number): Promise<ReadResults[ReadJob['kind']]> {
      const asked = turn.then(() => begin(job, timeoutMs))
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

/* Parses SQL just enough to refuse writes, and to find its parameters. */

/** Strings, quoted names and comments, which are ignored. */
const quoted = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/gu

/** Pragmas that only read. */
const pragmas: ReadonlySet<string> = new Set([
  'table_info',
  'table_xinfo',
  'table_list',
  'index_list',
  'index_info',
  'index_xinfo',
  'user_version',
  'page_count',
  'page_size',
  'freelist_count',
  'function_list',
  'integrity_check',
  'quick_check',
])

const reads: ReadonlySet<string> = new Set(['select', 'with', 'values', 'explain', 'pragma'])

function badQuery(message: string, cause?: unknown): MillraceError {
  return new MillraceError('bad-query', message, { cause })
}

/** Throws `bad-query` unless the text is one statement that only reads. Returns the names of its parameters. */
function checkStatement(sql: string): string[] {
  const bare = sql.replace(quoted, (found) => (/^(?:--|\/\*)/u.test(found) ? ' ' : ' x '))
  const [statement = '', ...rest] = bare.split(';')
  if (rest.some((more) => more.trim() !== '')) throw badQuery('There is more than one statement. Run one at a time.')
  const word = /^\s*([a-z]+)/iu.exec(statement)?.[1]?.toLowerCase() ?? ''
  if (word === '') throw badQuery('There is no SQL statement.')
  if (!reads.has(word))
    throw badQuery(`Queries only read: ${word.toUpperCase()} is not allowed. Begin with SELECT or WITH.`)
  const pragma = /^\s*(?:explain\s+(?:query\s+plan\s+)?)?pragma\s+(?:\w+\s*\.\s*)?(\w+)\s*(=)?/iu.exec(statement)
  if (pragma !== null && (pragma[2] !== undefined || !pragmas.has(pragma[1]!.toLowerCase()))) {
    throw badQuery(`Queries only read: PRAGMA ${pragma[1]} is not allowed.`)
  }
  return [...new Set(Array.from(statement.matchAll(/[:$@]([a-z_]\w*)/giu), ([, name]) => name!))]
}

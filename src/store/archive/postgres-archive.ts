/**
 * An archive in Postgres. Each row of the table `millrace_archive` has some entries of a run, one per line, like an export. All rows of a run are
 * written in one transaction, so a run is stored whole or not at all.
 *
 * The comment of the table names its layout. A table with another layout is not touched.
 */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { decodeEntries, encodeEntries } from '../encode.ts'
import { storeFailed } from '../store-error.ts'
import type { Archive } from './archive.ts'
import { shownPostgresUrl, withoutPassword } from './postgres-url.ts'

/** All runs have the same place. */
const place = 'postgres'
const layout = 'Millrace archive, layout 1'
/** Approximate characters of a row. */
const rowLength = 256 * 1024
/** The lock under which instances create the table; an arbitrary number. */
const creation = 0x6d_69_6c_6c
/** Timeout of a silent Postgres in ms: for connecting, and for each response. */
const patience = 4000
const options = {
  max: 4,
  idleTimeoutMillis: 30_000,
  keepAlive: true,
  allowExitOnIdle: true,
  application_name: 'millrace',
}

export function postgresArchive(url: string, { timeoutMs = patience }: { timeoutMs?: number } = {}): Archive {
  const shown = shownPostgresUrl(url)
  let pool: Pool | undefined
  let ready: Promise<void> | undefined

  async function load(): Promise<Pool> {
    const { Pool: Connections } = await importPg()
    if (pool !== undefined) return pool
    const limits = { connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs }
    pool = new Connections({ ...options, ...limits, connectionString: url })
    // An idle connection failed: the next one is new.
    pool.on('error', () => undefined)
    return pool
  }

  /** With a connection, and a table. */
  async function using<T>(what: string, work: (client: Client) => Promise<T>): Promise<T> {
    try {
      const client = await (await load()).connect()
      try {
        // Retried after a failure.
        ready ??= createTable(client)
        ready.catch(() => (ready = undefined))
        await ready
        const done = await work(client)
        client.release()
        return done
      } catch (error) {
        // It may be in a transaction, or wait for a response.
        client.release(error as Error)
        throw error
      }
    } catch (error) {
      if (error instanceof MillraceError) throw error
      throw storeFailed(what, shown, new Error(withoutPassword(wordsOf(error, timeoutMs), url)))
    }
  }

  const failedRead = (run: string, why: string) => storeFailed(`cannot read run ${run} in the archive`, shown, why)

  return {
    load: async () => void (await load()),
    placeOf: () => place,
    put: async ({ id }, entries) =>
      using(`cannot archive run ${id}`, async (client) => {
        await client.query('BEGIN')
        await client.query((await insertAll(client, id, entries)) ? 'COMMIT' : 'ROLLBACK')
      }),
    async *read(run) {
      let last: Entry | undefined
      for (let number = 0; last?.type !== 'run-end'; number++) {
        const text = 'SELECT entries FROM millrace_archive WHERE run = $1 AND number = $2'
        const { rows } = await using(`cannot read run ${run} in the archive`, async (client) =>
          client.query<{ entries: string }>(text, [run, number]),
        )
        if (rows.length === 0) throw failedRead(run, number === 0 ? 'the run is not there' : 'the run has no end')
        let batch: Entry[]
        try {
          batch = decodeEntries([rows[0]!.entries])
        } catch {
          throw failedRead(run, 'the run is damaged')
        }
        last = batch.at(-1)
        yield batch
      }
    },
    remove: async (run) =>
      using(`cannot remove run ${run} from the archive`, async (client) => {
        await client.query('DELETE FROM millrace_archive WHERE run = $1', [run])
      }),
    size: async () =>
      using('cannot read the size of the archive', async (client) => {
        const { rows } = await client.query<{ size: string }>(
          "SELECT pg_total_relation_size('millrace_archive') AS size",
        )
        return Number(rows[0]!.size)
      }),
    // Postgres does that by itself.
    tidy: async () => undefined,
    close: async () => pool?.end(),
  }
}

async function importPg(): Promise<Pg> {
  try {
    // @ts-expect-error: it comes without types.
    return (await import('pg')) as Pg
  } catch (cause) {
    throw new MillraceError('missing-package', 'an archive in Postgres needs a package: npm install pg', { cause })
  }
}

/** Inserts a run's rows. Returns false if the run is there already. */
async function insertAll(client: Client, run: string, entries: AsyncIterable<readonly Entry[]>): Promise<boolean> {
  let number = 0
  let lines: string[] = []
  let length = 0
  // The first row is the lock of a run: a concurrent writer of the same run waits here for the end of this transaction.
  async function insert(): Promise<boolean> {
    const text = 'INSERT INTO millrace_archive (run, number, entries) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING'
    const { rowCount } = await client.query(text, [run, number++, lines.join('\n')])
    lines = []
    length = 0
    return rowCount === 1
  }
  for await (const batch of entries) {
    if (batch.length === 0) continue
    lines.push(encodeEntries(run, batch))
    length += lines.at(-1)!.length
    if (length >= rowLength && !(await insert())) return false
  }
  return lines.length === 0 || insert()
}

async function createTable(client: Client): Promise<void> {
  // Not to_regclass: it may not see a table that was just created by another instance.
  const find = `SELECT obj_description(oid, 'pg_class') AS comment FROM pg_class
    WHERE relname = 'millrace_archive' AND pg_table_is_visible(oid)`
  const look = async () => (await client.query<{ comment: string | null }>(find)).rows[0]
  // First without the lock: the user need not have the right to create tables.
  let found = await look()
  if (found === undefined) {
    await client.query('BEGIN')
    await client.query('SELECT pg_advisory_xact_lock($1)', [creation])
    found = await look()
    if (found === undefined) {
      await client.query(`CREATE TABLE millrace_archive (
        run text NOT NULL, number integer NOT NULL, entries text NOT NULL, PRIMARY KEY (run, number))`)
      await client.query(`COMMENT ON TABLE millrace_archive IS '${layout}'`)
      found = { comment: layout }
    }
    await client.query('COMMIT')
  }
  if (found.comment === layout) return
  const what = `the table millrace_archive has another layout than “${layout}”, which this version reads`
  throw new MillraceError('store-version', `${what}. Use the version that wrote it, or another database.`)
}

/** Rephrases a timeout: `pg` reports only that it has given up. */
function wordsOf(error: unknown, timeoutMs: number): string {
  const text = textOf(error)
  return /timeout/iu.test(text) ? `no answer within ${timeoutMs} ms (${text})` : text
}

/** The first fault of a connection that was tried at several addresses. */
function textOf(error: unknown): string {
  const { message = '', code, errors } = error as { message?: string; code?: string; errors?: unknown[] }
  if (message !== '') return message
  return errors?.[0] === undefined ? (code ?? 'no answer') : textOf(errors[0])
}

/** The part of `pg` that the archive uses. Its own types are another package. */
interface Client {
  query<T>(text: string, values?: readonly unknown[]): Promise<{ rows: T[]; rowCount: number | null }>
  /** With an error, the connection is closed. */
  release(error?: Error): void
}

interface Pool {
  connect(): Promise<Client>
  on(event: 'error', listener: (error: Error) => void): this
  end(): Promise<void>
}

interface Pg {
  Pool: new (options: {
    connectionString: string
    max: number
    connectionTimeoutMillis: number
    idleTimeoutMillis: number
    query_timeout: number
    keepAlive: boolean
    allowExitOnIdle: boolean
    application_name: string
  }) => Pool
}

/**
 * A store in one SQLite file.
 *
 * Appends of one event-loop tick are committed together (`commit-queue.ts`); then they resolve and readers wake. A reader that keeps up gets the
 * appended batch itself; one that lags reads the table, so a slow client costs no memory. Several processes may open the file; readers get entries
 * of other processes a moment later.
 */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { Change, InboxMessage, Log, Posted, RunIndex, Store } from '../../part/log.ts'
import { AppendWrite, createBatchWriter } from './batches.ts'
import { createNotifier } from '../notifier.ts'
import { createCommitQueue, type Write } from './commit-queue.ts'
import { encodeMessage, decodeMessage } from '../encode.ts'
import { follow, type Puller, selectEntries, readMessages } from '../follow.ts'
import { createFleet } from '../fleet.ts'
import { createLimits } from '../limits.ts'
import { foldRow, isFork, ofFork, type StoredRow } from '../run-row.ts'
import { encodeMessages, postInOrder, type EncodedMessage } from '../post-all.ts'
import { createCheckpoints } from './checkpoint.ts'
import { createSqliteFeedback } from './feedback.ts'
import { createSqliteTestResults } from './test-results.ts'
import { createSqliteAudit, createSqliteLedger } from './ledger.ts'
import { createRunTable, isLong } from './runs.ts'
import { createSqliteThreadTitles } from './thread-titles.ts'
import type { MigrationOptions } from './migrate.ts'
import { openDatabase } from './schema.ts'
import { createChangeFeed } from './changes.ts'
import { refuseMerged } from '../live-tail-cache.ts'
import { createDropped, createBatchIndex, createBatchChains } from './batch-index.ts'
import { createPages } from './pages.ts'
import { restoreTexts } from '../shared-texts.ts'
import { createTexts } from './texts.ts'
import { createUpkeep } from './upkeep.ts'
import { createVersionGuard } from './version.ts'
import { createViewTable } from './views.ts'
import { createIndexer, type Indexer } from '../tables/indexer.ts'
import { createRecords } from '../tables/records.ts'
import { createRunList, hasWords } from '../tables/run-search.ts'
import { checkFork, runExists, storeClosed, storeFailed } from '../store-error.ts'
import type { DatabaseSync } from 'node:sqlite'

/** Polling interval for commits of other processes, in ms. */
const watchEvery = 200

/** Options of {@link sqliteStore}. */
export interface SqliteOptions {
  /**
   * How long a write waits for another process that has locked the file, in ms. Default 5000. Then it rejects with
   * `store-failed`. Waiting does not block the event loop.
   */
  busyTimeout?: number
  /** Open the file for reading only. It must exist and is not changed; writes reject with `store-failed`. */
  readOnly?: boolean
  /** The migration of a file of an older version: `false` refuses it with `store-version`. Default: it is migrated. */
  migration?: MigrationOptions | false
}

/**
 * Opens or creates the database file and its folder. Throws `store-failed` or `store-version` with the file's name.
 * Once `append` resolves, its entries survive a killed process; a power cut may lose the last second or two.
 */
export function sqliteStore(path: string, options: SqliteOptions = {}): Store {
  const { busyTimeout = 5000, readOnly = false, migration } = options
  const db = openDatabase(path, { busyTimeout, readOnly, migration })
  // Short, because SQLite waits on this thread. The commit queue retries without blocking the event loop.
  db.exec('PRAGMA busy_timeout = 5')
  const runs = createRunTable(db)
  const inbox = createInboxTable(db)
  const views = createViewTable(db)
  const entryBell = createNotifier()
  const inboxBell = createNotifier()
  const changeBell = createNotifier()
  const groups = createBatchIndex(db)
  const texts = createTexts(db)
  const restore = (stored: unknown) => restoreTexts(stored, texts.find)
  const pages = createPages(db, groups, restore)
  const dropped = createDropped(db, groups, texts)
  const batchChains = createBatchChains(db, groups)
  const feed = createChangeFeed(pages)
  const guard = createVersionGuard(db, path)
  const tables = { runs, pages, feed, views, texts, dropped, batchChains, groups }
  const wroteRow: Indexer['wroteRow'] = (...row) => indexer?.wroteRow(...row)
  const batchWriter = createBatchWriter(db, { ...tables, guard, notify, ringChanges, wroteRow })
  const checkpoints = readOnly ? undefined : createCheckpoints(db)
  const indexer = readOnly ? undefined : createIndexer(db, checkpoints, guard)
  const queue = createCommitQueue(db, path, busyTimeout, batchWriter, checkpoints)
  const fleet = createFleet({
    left: () => reading('list the runs that want an owner', () => runs.left(Date.now(), batchWriter.owns)),
    due: (before, limit) => reading('list due runs', () => runs.due(before, limit)),
    hasMore: (run, seen) => reading(`read the inbox of run ${run}`, () => inbox.next(run, seen) !== undefined),
  })
  const watching = db.location() === null ? undefined : setInterval(watch, watchEvery)
  watching?.unref()
  let closing: Promise<void> | undefined

  function ringChanges(): void {
    changeBell.notify('')
    indexer?.wrote()
  }

  function notify(run?: string): void {
    if (run !== undefined) return entryBell.notify(run)
    for (const notifier of [entryBell, inboxBell, changeBell]) notifier.ringAll()
  }

  /** Checks for commits of other processes, and for a newer version. */
  function watch(): void {
    try {
      batchWriter.refresh()
    } catch {
      notify() // Readers get the failure when they read.
    }
  }

  /** Queues a write; rejects if the store is closed. */
  function write<T>(what: string, apply: () => T, { pages: changes = 1 } = {}): Promise<T> {
    if (closing) return Promise.reject(storeClosed(what))
    return new Promise<T>((resolve, reject) => {
      let result: T
      const job: Write = {
        apply: () => void (result = apply()),
        done: () => resolve(result),
        fail: reject,
        yields: false,
        pages: changes,
      }
      queue.add(job)
    })
  }

  function reading<T>(what: string, read: () => T): T {
    if (closing) throw storeClosed(what)
    guard.check()
    try {
      return read()
    } catch (error) {
      throw error instanceof MillraceError ? error : storeFailed(`cannot ${what}`, path, error)
    }
  }

  function live<T>({ pull, leave }: Puller<T>, what: string): Puller<T> {
    const guarded: Puller<T> = { pull: () => (closing ? 'end' : reading(what, pull)) }
    return leave === undefined ? guarded : { ...guarded, leave }
  }

  const log: Log = {
    append(run, epoch, entries, view) {
      if (closing) return Promise.reject(storeClosed(`append to run ${run}`))
      return new Promise((resolve, reject) => {
        queue.add(new AppendWrite(batchWriter, { run, epoch, entries, view }, resolve, reject))
      })
    },
    claim: async (run, epoch) => {
      const claimed = await write(`claim run ${run}`, () => batchWriter.claim(run, epoch))
      if (claimed) fleet.claimed(run)
      return claimed
    },
    read: (run, options = {}) => {
      const { after = 0, step, types, signal } = options
      const limit = step === undefined && types === undefined ? options.limit : undefined
      return follow<Entry[]>({
        start: () =>
          live(
            selectEntries(batchWriter.reader({ run, after, limit, types, follows: signal !== undefined }), options),
            `read run ${run}`,
          ),
        bell: entryBell,
        key: run,
        signal,
        pause: setImmediate,
      })
    },
    post: async (run, key, message) => (await log.postAll(run, [{ key, message }]))[0]!,
    postAll: async (run, messages) => {
      const encoded = encodeMessages(run, messages)
      const posted = await write<Posted[]>(`post to run ${run}`, () =>
        postInOrder(encoded, (each) => inbox.post(run, each)),
      )
      if (posted[0]?.first) inboxBell.notify(run)
      return posted
    },
    inbox: (run, { after, signal } = {}) =>
      follow<InboxMessage>({
        start: () =>
          live(
            readMessages((n) => inbox.next(run, n), after),
            `read the inbox of run ${run}`,
          ),
        bell: inboxBell,
        key: run,
        signal,
        pause: setImmediate,
      }),
    changes: ({ after = 0, signal } = {}) =>
      follow<Change[]>({
        start: () => live(feed.reader(after), 'read the changes of all runs'),
        bell: changeBell,
        key: '',
        signal,
        pause: setImmediate,
      }),
    position: async () => reading('read the position', pages.position),
    fork: async (source, seq, run, at, user) => {
      const from = await index.get(source)
      checkFork(source, seq, from?.lastSeq)
      refuseMerged(source, seq, pages.read(source, seq, 1))
      let row: StoredRow | undefined
      const origin = { source, seq, at, user }
      for await (const batch of log.read(source, { before: seq + 1 })) {
        const entries = batch.map((entry) => ofFork(entry, run, origin))
        row = foldRow(row, run, from!.epoch, entries)
      }
      await write(`fork run ${source}`, () => {
        if (batchWriter.row(run) === undefined) return batchWriter.fork(row!, origin)
        if (!isFork(pages.origin(run), origin)) throw runExists(run)
      })
      entryBell.notify(run)
    },
  }

  const index: RunIndex = {
    get: async (run) => reading(`get run ${run}`, () => runs.get(run)),
    list: async (query = {}) => {
      if (!hasWords(query) && !isLong(query)) return reading('list runs', () => runs.list(query))
      if (records === undefined) return reading('list runs', () => (listAll ??= createRunList(db, runs))(query))
      reading('list runs', () => undefined)
      return records.listRuns(query)
    },
    due: async (before, limit = 1000) => reading('list due runs', () => runs.due(before, limit)),
    view: async (run) => reading(`get the view of run ${run}`, () => views.get(run)),
    keepView: async (run, seq, view) => {
      const text = encodeMessage(run, 'view', view)
      await write(`keep the view of run ${run}`, () => views.keep(run, seq, text))
    },
  }

  async function close(): Promise<void> {
    clearInterval(watching)
    indexer?.close()
    fleet.close()
    await queue.drain()
    notify()
    await checkpoints?.close()
    await records?.close()
    db.close()
  }

  const upkeep = createUpkeep(db, {
    runs,
    groups,
    texts,
    dropped,
    reading,
    write: (what, apply, changes) => write(what, apply, { pages: changes }),
    changed: batchWriter.forget,
    eraseFile: checkpoints?.erase,
  })
  const file = db.location()
  let listAll: ReturnType<typeof createRunList> | undefined
  const records =
    file === null
      ? undefined
      : createRecords({
          db,
          path: file,
          log,
          indexer,
          reading,
          write: (what, apply, changes) => write(what, apply, { pages: changes }),
        })
  const store: Store = {
    log,
    runs: index,
    fleet,
    limits: createLimits(),
    ledger: createSqliteLedger({ db, write, reading }),
    audit: createSqliteAudit({ db, write, reading }),
    feedback: createSqliteFeedback({ db, write, reading }),
    testResults: createSqliteTestResults({ db, write, reading }),
    titles: createSqliteThreadTitles({ db, write, reading }),
    upkeep,
    durable: true,
    close: () => (closing ??= close()),
  }
  return records === undefined ? store : { ...store, records }
}

/** The `inbox` table: the unique constraint on (run, key) makes the first post win. */
interface InboxTable {
  /** Call this inside a transaction. */
  post(run: string, message: EncodedMessage): Posted
  next(run: string, after: number): InboxMessage | undefined
}

function createInboxTable(db: DatabaseSync): InboxTable {
  const insert = db.prepare(
    `INSERT INTO inbox (run, n, key, message) SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3 FROM inbox WHERE run = ?1
     ON CONFLICT (run, key) DO NOTHING`,
  )
  const winner = db.prepare('SELECT message FROM inbox WHERE run = ? AND key = ?')
  const next = db.prepare('SELECT n, key, message FROM inbox WHERE run = ? AND n > ? ORDER BY n LIMIT 1')
  return {
    post(run, { key, message, text }) {
      if (insert.run(run, key, text).changes === 1) return { first: true, message }
      return { first: false, message: decodeMessage(String(winner.get(run, key)?.message)) }
    },
    next(run, after) {
      const row = next.get(run, after)
      return row && { n: Number(row.n), key: String(row.key), message: decodeMessage(String(row.message)) }
    },
  }
}

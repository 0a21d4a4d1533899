/** Compacts and deletes runs in slices: each is one transaction of a few ms, after which the database is consistent. */
import type { DatabaseSync } from 'node:sqlite'
import { hasEnded } from '../../part/log.ts'
import type { Upkeep, UpkeepPage, Erased } from '../../part/upkeep.ts'
import type { Dropped, BatchIndex, TickRow } from './batch-index.ts'
import type { RunTable } from './runs.ts'
import { createTrim, refillRun, refillWithheld, removeRunRows } from '../tables/remove-run.ts'
import { createCompaction } from '../../fold/compaction.ts'
import { sizeOfRow } from './delta-block.ts'
import { createLineMerge, pieceLength } from '../merge-lines.ts'
import { createMove } from '../tables/move-rows.ts'
import { createSharedTexts, mayShare, shareTexts, type SharedTexts } from '../shared-texts.ts'
import type { TextTable } from './texts.ts'

export interface UpkeepContext {
  runs: RunTable
  groups: BatchIndex
  texts: Pick<TextTable, 'add'>
  dropped: Dropped
  /** Runs `apply` in a transaction. `pages`: approximate number of pages that it changes. */
  write<T>(what: string, apply: () => T, pages: number): Promise<T>
  reading<T>(what: string, read: () => T): T
  /** Called when a run was rewritten, or deleted. */
  changed(run: string, isDropped: boolean): void
  /** `Checkpoints.erase`; absent for a database in memory. */
  eraseFile?: ((rewrites: boolean) => Promise<boolean>) | undefined
  /** Measures slices. Default `performance.now`. */
  clock?: () => number
}

/** Number of runs that are checked in one slice. */
const window = 100
/** Number of rows that are deleted at once. */
const mostRows = 16
/** Number of pages that are moved at once. */
const mostPages = 20

const noRest = async (): Promise<void> => undefined

export function createUpkeep(db: DatabaseSync, context: UpkeepContext): Upkeep {
  const { runs, groups, texts, dropped, write, reading, changed, eraseFile, clock = () => performance.now() } = context
  const pieces = createPieces(db, groups, texts)
  const trim = createTrim(db)
  // Grows with each deletion, also by another process.
  const generation = db.prepare('SELECT generation FROM index_state', { returnArrays: true })
  const toCompact = db.prepare(
    `SELECT id FROM runs WHERE compacted_at IS NULL AND ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at LIMIT ?`,
  )
  // Runs of an older version, each of which has texts of its own that later ones share.
  const toShare = db.prepare(
    'SELECT id FROM runs WHERE shares_texts = 0 AND ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at LIMIT ?',
  )
  const mark = db.prepare('UPDATE runs SET compacted_at = ?, shares_texts = 1 WHERE id = ?')
  // The view of a compacted run is folded from few entries: a second copy of a long text is not worth its space.
  const dropLongView = db.prepare(
    'DELETE FROM views WHERE run = (SELECT number FROM runs WHERE id = ?) AND length(view) > 65536',
  )
  // An ended run is not changed any more. Two conditions, because both use the index of a thread of any length.
  const isFree = `r.ended_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.thread_id = r.thread_id AND o.ended_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.thread_id = r.thread_id AND o.ended_at >= ?1)
    AND NOT EXISTS (SELECT 1 FROM forks WHERE source = r.id)
    AND NOT EXISTS (SELECT 1 FROM runs p WHERE p.id = r.parent_run_id AND p.ended_at IS NULL)`
  const next = db.prepare(
    `SELECT number, id, ${isFree} AS free, iif(${isFree},
       (SELECT coalesce(sum(length(entries)), 0) FROM (SELECT k.entries FROM tick_groups g JOIN json_each(g.ticks) i JOIN ticks k ON k.id = i.value WHERE g.run = r.number LIMIT 1000)), 0) AS bytes
     FROM (SELECT * FROM runs WHERE number > ?2 ORDER BY number LIMIT ${window}) r ORDER BY number`,
  )
  const numberOf = db.prepare('SELECT number FROM runs WHERE id = ?')
  const stillFree = db.prepare(`SELECT thread_id FROM runs r WHERE id = ?2 AND ${isFree}`)
  const removals = [
    'views WHERE run = (SELECT number FROM runs WHERE id = ?)',
    'inbox WHERE run = ?',
    'forks WHERE run = ?',
    'feedback WHERE run = ?',
    'runs WHERE id = ?',
  ].map((rows) => db.prepare(`DELETE FROM ${rows}`))
  const leaveThread = ['inbox WHERE run = ?1', 'thread_titles WHERE thread = ?2'].map((rows) =>
    db.prepare(`DELETE FROM ${rows} AND NOT EXISTS (SELECT 1 FROM runs WHERE thread_id = ?2)`),
  )
  let eraser: ReturnType<typeof createErase> | undefined
  const pragma = (name: 'page_count' | 'page_size' | 'freelist_count') => {
    const statement = db.prepare(`PRAGMA ${name}`, { returnArrays: true })
    return (statement.get() as unknown as [number])[0]
  }

  /** Repeats `step` until it returns false or the slice is over. Returns whether work is left. */
  function slice(step: () => boolean): boolean {
    const began = clock()
    let more = step()
    while (more && clock() - began < sliceLength) more = step()
    return more
  }

  /** Removes the rows of a deleted run. */
  async function sweep(number: number, rest = noRest): Promise<void> {
    const rows = () => slice(() => dropped.removeSome(number, mostRows))
    while (await write('delete rows of a run', rows, 256)) await rest()
  }

  /** Completes interrupted deletions, and those of another process. */
  async function sweepAll(rest: () => Promise<void>): Promise<void> {
    for (const number of dropped.unfinished()) await sweep(number, rest)
  }

  return {
    size: async () =>
      reading('read the size', () => {
        const free = pragma('freelist_count')
        return { used: (pragma('page_count') - free) * pragma('page_size'), free: free * pragma('page_size') }
      }),
    uncompacted: async (endedBefore, limit) =>
      reading('list runs', () => {
        const found = toCompact.all(endedBefore, limit)
        const more = found.length < limit ? toShare.all(endedBefore, limit - found.length) : []
        return [...new Set([...found, ...more].map(({ id }) => String(id)))]
      }),
    async compact(run, { rest = noRest, dryRun = false } = {}) {
      const row = reading(`get run ${run}`, () => runs.get(run))
      if (row === undefined || !hasEnded(row.status)) return undefined
      const total = { entriesBefore: 0, entriesAfter: 0, bytesBefore: 0, bytesAfter: 0 }
      const next = compactPieces(run, pieces, clock)
      for (let piece; (piece = reading(`read run ${run}`, next)) !== undefined;) {
        await rest()
        if (piece === 'reading') continue
        const { rows, text, texts: shared, entries } = piece
        total.entriesBefore += entries.before
        total.entriesAfter += entries.after
        total.bytesBefore += piece.bytes
        total.bytesAfter += Buffer.byteLength(text)
        if (rows.length > 1 || entries.after < entries.before || shared.roots.size > 0) {
          const replace = () => pieces.replace(run, rows, text, shared)
          // Another process compacts or deletes it.
          if (!dryRun && !(await write(`compact run ${run}`, replace, rows.length + text.length / 4096)))
            return undefined
          if (!dryRun) changed(run, false)
        }
        await rest()
      }
      if (dryRun) return total
      await write(
        `compact run ${run}`,
        () => {
          mark.run(total.entriesAfter < total.entriesBefore ? Date.now() : (row.compactedAt ?? 0), run)
          dropLongView.run(run)
        },
        10,
      )
      changed(run, false)
      return total
    },
    expired: async (idleBefore, after = 0): Promise<UpkeepPage> =>
      reading('list runs', () => {
        const rows = next.all(idleBefore, after)
        const free = rows.filter((row) => row.free === 1)
        const found = { runs: free.map(({ id, bytes }) => ({ id: String(id), bytes: Number(bytes) })) }
        return rows.length < window ? found : { ...found, next: Number(rows.at(-1)!.number) }
      }),
    async drop(run, { rest = noRest } = {}) {
      let isWithheld = false
      // First its rows of the tables: they may be many.
      const some = () => (stillFree.get(Infinity, run) === undefined ? undefined : slice(() => trim(run)))
      for (let more: boolean | undefined = true; more === true;) {
        more = await write(`delete run ${run}`, some, 256)
        isWithheld ||= more !== undefined
        if (more !== undefined) {
          await rest().catch(async (error: unknown) => {
            await write(`keep run ${run}`, () => refillRun(db, run), 256)
            throw error
          })
        }
      }
      const number = await write(
        `delete run ${run}`,
        (): number | undefined => {
          const row = stillFree.get(Infinity, run)
          if (row === undefined) {
            // It was forked meanwhile, for example: it stays.
            if (isWithheld && runs.get(run) !== undefined) refillRun(db, run)
            return undefined
          }
          const left = dropped.begin(run)
          removeRunRows(db, run)
          for (const each of removals) each.run(run)
          for (const each of leaveThread) each.run(`thread:${String(row.thread_id)}`, String(row.thread_id))
          return left
        },
        20,
      )
      if (number === undefined) return false
      changed(run, true)
      await rest()
      await sweep(number, rest)
      return true
    },
    generation: async () => reading('read runs', () => (generation.get() as unknown as [number])[0]),
    // A number may be reused.
    marks: async (list) =>
      reading('read runs', () => {
        const [deletions] = generation.get() as unknown as [number]
        return list.map((run) => {
          const row = numberOf.get(run)
          return row && `${deletions} ${String(row.number)}`
        })
      }),
    async erase({ rest = noRest, rewrites = false } = {}) {
      await sweepAll(rest)
      eraser ??= createErase(db, { write, slice, eraseFile })
      return eraser(rest, rewrites)
    },
    async vacuum({ rest = noRest } = {}) {
      await sweepAll(rest)
      while (await write('fill the tables again', () => refillWithheld(db), 10)) await rest()
      const pages = () => {
        slice(() => {
          const before = pragma('freelist_count')
          db.exec(`PRAGMA incremental_vacuum(${mostPages})`)
          return pragma('freelist_count') < before
        })
        return pragma('freelist_count')
      }
      for (let before = Infinity; ;) {
        const left = await write('vacuum', pages, 300)
        // A file of an early version cannot be vacuumed.
        if (left === 0 || left >= before) return
        before = left
        await rest()
      }
    },
  }
}

/* Reads the rows of a run batch by batch, merged, and replaces each batch by one row. */

/** In ms. */
const sliceLength = 5

interface MergedPiece {
  rows: TickRow[]
  /** The merged entries as JSON lines. */
  text: string
  /** The texts that they refer to and have not referred to before. */
  texts: SharedTexts
  bytes: number
  entries: { before: number; after: number }
}

interface Pieces {
  /** Leave the loop before something is written. */
  read(run: string, after: number): Iterable<TickRow>
  /** The `seq`s at which forks branch off, including forks of forks. */
  bounds(run: string): Set<number>
  /** Call this inside a transaction. Returns false without a change if the rows have changed. */
  replace(run: string, rows: TickRow[], text: string, texts: SharedTexts): boolean
}

function createPieces(db: DatabaseSync, groups: BatchIndex, texts: Pick<TextTable, 'add'>): Pieces {
  const forks = db.prepare(
    `WITH RECURSIVE branch (run, seq) AS (
       SELECT run, seq FROM forks WHERE source = ?
       UNION SELECT forks.run, min(forks.seq, branch.seq) FROM forks JOIN branch ON forks.source = branch.run
     ) SELECT DISTINCT seq FROM branch`,
  )
  const move = createMove(db)
  const numberOf = db.prepare('SELECT number FROM runs WHERE id = ?')

  return {
    read: (run, after) => groups.from(run, after + 1),
    bounds: (run) => new Set(forks.all(run).map(({ seq }) => Number(seq))),
    replace(run, rows, text, shared) {
      // The last position is kept: readers of changes at it miss nothing.
      if (!groups.replace(run, rows, text)) return false
      texts.add(Number(numberOf.get(run)!.number), shared)
      const [from, to] = [rows[0]!, rows.at(-1)!]
      move(run, { firstSeq: from.firstSeq, lastSeq: to.lastSeq, tick: to.id, text })
      return true
    },
  }
}

/**
 * Returns a function that continues reading for one slice. It returns the next batch of a run, `reading` if the batch is incomplete, or undefined
 * after the last.
 */
function compactPieces(run: string, pieces: Pieces, clock: () => number): () => MergedPiece | 'reading' | undefined {
  let texts = createSharedTexts()
  const lines = createLineMerge(run, createCompaction(pieces.bounds(run)), {
    wants: mayShare,
    rewrite(entry, line) {
      // Another run replaces one that cannot be read.
      if (JSON.stringify(entry) !== line) return line
      const shared = shareTexts(entry, texts)
      return shared === entry ? line : JSON.stringify(shared)
    },
  })
  let after = 0
  let rows: TickRow[] = []
  let length = 0

  /** Returns whether the slice ended before the batch did. */
  function readOn(): boolean {
    const began = clock()
    for (const row of pieces.read(run, after)) {
      after = row.lastSeq
      rows.push(row)
      lines.add(row.entries)
      length += sizeOfRow(row)
      if (length >= pieceLength) return false
      if (clock() - began >= sliceLength) return true
    }
    return false
  }

  function finish(): MergedPiece {
    const { text, before, after: left } = lines.finish()
    const bytes = rows.reduce((sum, row) => sum + Buffer.byteLength(row.entries) + 1, -1)
    const piece = { rows, text, texts, bytes, entries: { before, after: left } }
    texts = createSharedTexts()
    rows = []
    length = 0
    return piece
  }

  return () => {
    if (readOn()) return 'reading'
    return rows.length === 0 ? undefined : finish()
  }
}

/**
 * Erases deleted data. SQLite overwrites deleted rows and freed pages (`secure_delete`). Three kinds of copies remain:
 *
 * - The words of texts: the full-text index has no texts, so it can only mark the deleted ones. It drops their words when it merges all its
 *   segments.
 * - The WAL, which has old versions of pages until it is truncated. A concurrent reader prevents that.
 * - Copies of rows that SQLite has moved between pages: it does not overwrite the old place while that page is in use. Only `VACUUM` removes them:
 *   it rewrites the file, and commits wait. For a small file that takes a moment.
 */
interface EraseContext {
  /** Runs `apply` in a transaction. `pages`: approximate number of pages that it changes. */
  write<T>(what: string, apply: () => T, pages: number): Promise<T>
  /** Repeats `step` until it returns false or the slice is over. Returns whether work is left. */
  slice(step: () => boolean): boolean
  /** `Checkpoints.erase`. Undefined for a database in memory. */
  eraseFile: ((rewrites: boolean) => Promise<boolean>) | undefined
}

/** Maximum bytes of a file that is rewritten without a request: about 0.2 s. */
const smallFile = 16 * 1024 * 1024
/** Pages of the full-text index that are merged at once: about 2 ms. */
const mostPagesAtOnce = 16
/** Ids of index rows that mark deleted texts of a segment start here. */
const firstTombstone = 2 ** 53

function createErase(db: DatabaseSync, { write, slice, eraseFile }: EraseContext) {
  const state = db.prepare('SELECT generation, erased FROM index_state')
  const mark = db.prepare('UPDATE index_state SET erased = max(erased, ?)')
  const tombstone = db.prepare(`SELECT 1 FROM search_data WHERE id >= ${firstTombstone} LIMIT 1`)
  const merge = db.prepare(`INSERT INTO search (search, rank) VALUES ('merge', ?)`)
  const changes = db.prepare('SELECT total_changes() AS n')
  const size = db.prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size')
  let last: Promise<unknown> = Promise.resolve()

  /** Returns whether there were segments to merge. A negative number of pages begins with all segments. */
  function mergeSome(pages: number): boolean {
    const before = Number(changes.get()!.n)
    merge.run(pages)
    // One change is the command itself.
    return Number(changes.get()!.n) - before > 1
  }

  async function forgetWords(rest: () => Promise<void>): Promise<void> {
    let isBegun = false
    const some = () =>
      slice(() => {
        if (isBegun) return mergeSome(mostPagesAtOnce)
        isBegun = true
        return tombstone.get() !== undefined && mergeSome(-mostPagesAtOnce)
      })
    while (await write('erase the words of deleted runs', some, 256)) await rest()
  }

  async function erase(rest: () => Promise<void>, rewrites: boolean): Promise<Erased> {
    const { generation, erased } = state.get()!
    if (generation === erased && !rewrites) return 'nothing'
    await forgetWords(rest)
    const all = rewrites || Number(size.get()!.bytes) <= smallFile
    if (eraseFile !== undefined && !(await eraseFile(all))) return 'read'
    await write('note that deleted runs are erased', () => mark.run(generation!), 1)
    return all ? 'nothing' : 'moved'
  }

  /** One at a time: the second call often finds nothing to do. */
  return (rest: () => Promise<void>, rewrites: boolean): Promise<Erased> => {
    const done = last.then(() => erase(rest, rewrites))
    last = done.catch(() => undefined)
    return done
  }
}

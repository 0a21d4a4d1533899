/** Collects the rows that a transaction adds to the `ticks` table, and serves the readers of runs. */
import type { DatabaseSync } from 'node:sqlite'
import { isDelta, type Entry } from '../../part/entry.ts'
import type { Appended, KeptView } from '../../part/log.ts'
import { admitEntries, isSameEntry } from '../check-append.ts'
import type { Gathering, Write } from './commit-queue.ts'
import { sizeOf } from './delta-block.ts'
import { encodeTick, encodeMessage } from '../encode.ts'
import type { Puller } from '../follow.ts'
import { createRowCache } from '../row-cache.ts'
import { indexAfter } from '../live-tail-cache.ts'
import { claimRow, foldRow, hasOnlyGrown, isRenamed, type Origin, type StoredRow } from '../run-row.ts'
import type { SqliteChanges } from './changes.ts'
import type { Dropped, Group, BatchIndex, BatchChains } from './batch-index.ts'
import type { SqlitePages } from './pages.ts'
import type { RunTable } from './runs.ts'
import { createSharedTexts, isSharing, shareTexts, type SharedTexts } from '../shared-texts.ts'
import type { TextTable } from './texts.ts'
import { createTickReader, type Wanted } from './reader.ts'
import type { VersionGuard } from './version.ts'
import type { ViewTable } from './views.ts'
import type { DeltaRow } from '../tables/delta-rows.ts'
import { refillRun } from '../tables/remove-run.ts'
import type { MillraceError } from '../../part/error.ts'

/** The additions of a transaction to a run. `before` is absent for a new run. */
interface Gathered {
  before: StoredRow | undefined
  row: StoredRow
  entries: readonly Entry[]
  /** The same array, if it was made here and not by the caller. */
  own: Entry[] | undefined
  lines: string
  /** The texts that the lines refer to. */
  texts: SharedTexts | undefined
  /** The view to store, as JSON. */
  view: { seq: number; text: string } | undefined
  /** The id of the row in the table. */
  n: number
}

/** The context that transactions need from the store. */
export interface BatchWriterContext {
  runs: RunTable
  pages: SqlitePages
  feed: SqliteChanges
  views: ViewTable
  texts: Pick<TextTable, 'add'>
  dropped: Dropped
  batchChains: BatchChains
  groups: Pick<BatchIndex, 'add'>
  guard: Pick<VersionGuard, 'look'>
  /** Wakes the readers of a run; without one, all readers, because another connection has committed. */
  notify(run?: string): void
  ringChanges(): void
  /** Called for each row of the table after its commit. */
  wroteRow(row: DeltaRow, hasOnlyDeltas: boolean): void
}

/** Entries as JSON lines, and the texts that these refer to. */
interface EncodedEntries {
  lines: string
  texts: SharedTexts | undefined
}

export interface BatchWriter extends Gathering {
  /** Encodes entries of a run as they are stored. */
  encode(run: string, entries: readonly Entry[]): EncodedEntries
  /** Adds entries, and the same as they are stored, to the open transaction. If `checkAppend` throws, adds nothing and rethrows. */
  apply(run: string, epoch: number, entries: readonly Entry[], encoded: EncodedEntries): Appended
  /** Stores a view with the entries of the open transaction. `text` is JSON. */
  keepView(run: string, seq: number, text: string): void
  /** Adds a claim to the open transaction. */
  claim(run: string, epoch: number): boolean
  /** The row of a run, including changes of the open transaction. */
  row(run: string): StoredRow | undefined
  /** Adds a fork to the open transaction. */
  fork(row: StoredRow, origin: Origin): void
  /** Call this when the rows of an ended run were rewritten or, with `isDropped`, deleted. */
  forget(run: string, isDropped: boolean): void
  /** Detects commits of other connections. */
  refresh(): void
  /** Whether the run's last append was made here and no other connection has written since. */
  knows(run: string): boolean
  /** Whether this process claimed or started the run, which is running since. */
  owns(run: string): boolean
  /**
   * Creates a reader: it gets cached entries if it keeps up, otherwise pages of the table. `limit`: it needs no more entries. `types`: it needs
   * only these, but may get others.
   */
  reader(wanted: Wanted): Puller<Entry[]>
}

export function createBatchWriter(
  db: DatabaseSync,
  {
    runs,
    pages,
    feed,
    views,
    texts,
    dropped,
    batchChains,
    groups,
    guard,
    notify,
    ringChanges,
    wroteRow,
  }: BatchWriterContext,
): BatchWriter {
  const dataVersion = db.prepare('PRAGMA data_version', { returnArrays: true })
  const rowCache = createRowCache()
  // A new map each time: a cleared one leaves its old table behind, which refers to the next one. Once one of them is old, V8's young generation
  // retains all later ones and their contents.
  let gathered = new Map<string, Gathered>()
  const owned = new Set<string>()
  const sources = { rowCache, runs, pages, dropped }
  const [opened] = dataVersion.get() as unknown as [number]
  let version: unknown
  let isStale = false

  function rowOf(run: string): StoredRow | undefined {
    return gathered.get(run)?.row ?? rowCache.get(run)?.row ?? runs.stored(run)
  }

  /** Checks whether another connection has committed: the cached rows may then be stale. */
  function look(): boolean {
    const [now] = dataVersion.get() as unknown as [number]
    if (now === version) return false
    guard.look()
    const isFirst = version === undefined
    version = now
    rowCache.clear()
    feed.clear()
    dropped.refresh()
    // Readers may have come before the first look.
    return !isFirst || now !== opened
  }

  /** Returns a predicate: whether an entry is stored or in the open transaction. */
  function storedEntries(run: string): (entry: Entry) => boolean {
    const written = gathered.get(run)?.entries ?? []
    let near: Entry[] = []
    return (entry) => {
      const { seq } = entry
      let stored = entryAt(written, seq) ?? entryAt(near, seq)
      if (stored === undefined) stored = (near = pages.read(run, seq - 1))[0]
      return stored !== undefined && isSameEntry(stored, entry)
    }
  }

  function addChanges(done: [string, Gathered][]): void {
    const stored = done.filter(([, { entries }]) => entries.length > 0)
    if (stored.length === 0) return
    const changes = stored.map(([run, { n, entries }]) => ({ n, run, entries }))
    const size = stored.reduce((sum, [, { lines, entries }]) => sum + sizeOf(lines, entries.length), 0)
    feed.add(changes, size)
  }

  return {
    isAlone: () => owned.size < 2,
    knows: (run) => rowCache.get(run) !== undefined,
    owns: (run) => owned.has(run),
    begin() {
      isStale = look()
    },
    refresh() {
      if (look()) notify()
    },
    forget(run, isDropped) {
      rowCache.forget(run)
      if (isDropped) notify(run)
    },
    row: rowOf,
    fork(row, origin) {
      runs.insert(row)
      pages.addFork(row.id, origin)
    },
    encode: (run, entries) => encodeShared(run, entries, rowCache.get(run)?.toLine),
    apply(run, epoch, entries, encoded) {
      const open = gathered.get(run)
      const before = rowOf(run)
      const admitted = admitEntries(run, before, epoch, entries, storedEntries(run))
      if (admitted === 'fenced') {
        owned.delete(run)
        batchChains.forget(run)
      }
      if (typeof admitted === 'string') return admitted
      const { lines, texts: shared } = admitted === entries ? encoded : encodeShared(run, admitted)
      const row = foldRow(before, run, epoch, admitted)
      if (!open)
        gathered.set(run, {
          before,
          row,
          entries: admitted,
          own: undefined,
          lines,
          texts: shared,
          view: undefined,
          n: 0,
        })
      else {
        open.row = row
        open.lines += open.lines === '' ? lines : `\n${lines}`
        open.texts = bothOf(open.texts, shared)
        open.entries = open.own ??= [...open.entries]
        for (const entry of admitted) open.own.push(entry)
      }
      return 'stored'
    },
    keepView(run, seq, text) {
      const open = gathered.get(run)
      // Without new entries the row is in the table already.
      if (open) open.view = { seq, text }
      else views.keep(run, seq, text)
    },
    claim(run, epoch) {
      const before = rowOf(run)
      const row = claimRow(before, epoch)
      if (row === undefined) return false
      const open = gathered.get(run)
      if (open) open.row = row
      else
        gathered.set(run, {
          before,
          row,
          entries: [],
          own: undefined,
          lines: '',
          texts: undefined,
          view: undefined,
          n: 0,
        })
      return true
    },
    flush() {
      // The last page of the table; and for each run its row, and sometimes its group and view.
      let pages = 1
      for (const [run, each] of gathered) {
        const { before, row, entries, lines, texts: shared, view } = each
        let group: Group | undefined
        if (!before) dropped.revive(run)
        if (entries.length > 0) {
          const batch = { firstSeq: entries[0]!.seq, lastSeq: row.lastSeq, entries: lines }
          const added = batchChains.add(run, before?.lastTick, batch, row.status !== 'running')
          each.n = added.id
          row.lastTick = added.last
          group = added.group
        }
        if (!before) runs.insert(row, dropped.isEmpty())
        else if (hasOnlyGrown(before, row)) runs.advance(row)
        else runs.update(row)
        if (before !== undefined && isRenamed(before, row)) {
          runs.rename(row)
          // Its texts are found by the agent, and its title is one of them.
          refillRun(db, run)
        }
        if (group !== undefined) groups.add(row.number!, group)
        const added = shared === undefined ? 0 : texts.add(row.number!, shared)
        if (view !== undefined) views.keepOf(row.number!, view.seq, view.text)
        pages += 1 + (lines.length + added + (view?.text.length ?? 0)) / 4096
      }
      return pages
    },
    committed() {
      const done = [...gathered]
      gathered = new Map()
      if (feed.isRead) addChanges(done)
      for (const [run, { before, row, entries, lines, n }] of done) {
        if (row.status !== 'running') owned.delete(run)
        else if (row.epoch !== before?.epoch) owned.add(run)
        if (entries.length === 0) {
          // A claim. The run is not `known` before its next append, unless it already is.
          const head = rowCache.get(run)
          if (head) head.row = row
          continue
        }
        wroteRow({ id: n, run, firstSeq: entries[0]!.seq, lastSeq: row.lastSeq }, entries.every(isDelta))
        const head = rowCache.add(run, row, entries, sizeOf(lines, entries.length))
        notify(run)
        rowCache.trim(run, head)
      }
      ringChanges()
      if (isStale) notify()
    },
    rolledBack() {
      // Removed rows are back.
      dropped.refresh()
      gathered = new Map()
      if (isStale) notify()
    },
    reader: (wanted) => createTickReader(sources, wanted),
  }
}

function entryAt(entries: readonly Entry[], seq: number): Entry | undefined {
  const entry = entries[indexAfter(entries, seq - 1)]
  return entry?.seq === seq ? entry : undefined
}

function encodeShared(
  run: string,
  entries: readonly Entry[],
  toLine?: Parameters<typeof encodeTick>[2],
): EncodedEntries {
  let texts: SharedTexts | undefined
  let stored = entries
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i]!
    if (!isSharing(entry)) continue
    const shared = shareTexts(entry, (texts ??= createSharedTexts()))
    if (shared !== entry) stored = stored.with(i, shared)
  }
  return {
    lines: encodeTick(run, stored, toLine),
    texts: texts === undefined || texts.roots.size === 0 ? undefined : texts,
  }
}

function bothOf(a: SharedTexts | undefined, b: SharedTexts | undefined): SharedTexts | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return { ...a, roots: new Set([...a.roots, ...b.roots]), texts: new Map([...a.texts, ...b.texts]) }
}

/* An append, as a write of the commit queue. A class, not closures: one for each delta. */

/** The arguments of `Log.append`. */
interface Given {
  run: string
  epoch: number
  entries: readonly Entry[] | (() => readonly Entry[])
  view: (() => KeptView | undefined) | undefined
}

export class AppendWrite implements Write {
  readonly yields: boolean
  readonly fail: (error: MillraceError) => void
  readonly #ticks: BatchWriter
  readonly #given: Given
  readonly #resolve: (appended: Appended) => void
  #entries: readonly Entry[] | undefined
  #encoded: EncodedEntries | undefined
  #kept: { seq: number; text: string } | undefined
  #appended: Appended = 'stored'

  constructor(
    writer: BatchWriter,
    given: Given,
    resolve: (appended: Appended) => void,
    fail: (error: MillraceError) => void,
  ) {
    this.yields = !writer.knows(given.run)
    this.fail = fail
    this.#ticks = writer
    this.#given = given
    this.#resolve = resolve
    // The caller may change its array later.
    this.#entries = typeof given.entries === 'function' ? undefined : [...given.entries]
    this.#encoded = undefined
    this.#kept = undefined
  }

  apply(): void {
    const { run, epoch, entries } = this.#given
    // A write may be applied twice: call `entries` only once.
    this.#entries ??= typeof entries === 'function' ? entries() : entries
    this.#encoded ??= this.#ticks.encode(run, this.#entries)
    if (this.#entries.length === 0) return
    this.#appended = this.#ticks.apply(run, epoch, this.#entries, this.#encoded)
    if (this.#appended !== 'fenced') this.#keepView()
  }

  #keepView(): void {
    const { run, view } = this.#given
    const newView = this.#kept === undefined ? view?.() : undefined
    if (newView !== undefined) this.#kept = { seq: newView.seq, text: encodeMessage(run, 'view', newView.view) }
    if (this.#kept !== undefined) this.#ticks.keepView(run, this.#kept.seq, this.#kept.text)
  }

  done(): void {
    this.#resolve(this.#appended)
  }
}

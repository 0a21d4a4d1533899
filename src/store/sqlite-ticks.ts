/** The `ticks` table and the latest entries of runs: collects appends per transaction, reads pages, serves live readers. */
import type { DatabaseSync } from 'node:sqlite'
import type { Entry } from '../part/entry.ts'
import { hasEnded, type Appended, type RunRow } from '../part/log.ts'
import type { Bell } from './bell.ts'
import { checkAppend, isSameEntry } from './check-append.ts'
import type { Gathering } from './commit-queue.ts'
import { decodeEntries, encodeEntries } from './encode.ts'
import type { Puller } from './follow.ts'
import { createRecent, type Position, type Recent } from './recent.ts'
import { foldRow } from './run-row.ts'
import type { RunTable } from './sqlite-runs.ts'

/** Page limits: about 256 KB of text, or 256 rows. The row that reaches a limit is included. */
const pageLength = 256 * 1024
const pageRows = 256

/** A run that is active here: its row, so that an append needs no read, and its latest entries. */
interface Head {
  row: RunRow
  recent: Recent
}

/**
 * Limit in characters, over all runs, for entries cached for a reader that is behind: the first reader of a run that has not
 * arrived yet (`POST /api/runs`, then `GET`; a short answer may end before the response is sent), and readers of a run that
 * is no longer running.
 */
const mostHeld = 8 * 1024 * 1024

/** What a transaction adds to a run. `before` is absent for a new run. */
interface Gathered {
  before: RunRow | undefined
  row: RunRow
  entries: Entry[]
  lines: string
}

export interface Ticks extends Gathering {
  /** Adds entries, and the same as JSON lines, to the open transaction. If `checkAppend` throws, adds nothing and rethrows. */
  apply(run: string, epoch: number, entries: readonly Entry[], lines: string): Appended
  /** Adds a claim to the open transaction. */
  claim(run: string, epoch: number): boolean
  /** Whether the run's last append was made here and no other connection has written since. */
  knows(run: string): boolean
  /** Creates a reader: it gets cached entries if it keeps up, else pages of the table. */
  reader(run: string, after: number): Puller<Entry[]>
}

export function createTicks(db: DatabaseSync, runs: RunTable, bell: Bell): Ticks {
  const insert = db.prepare('INSERT INTO ticks (run, first_seq, last_seq, entries) VALUES (?, ?, ?, ?)')
  const select = db.prepare(
    `SELECT entries FROM ticks WHERE run = ?1 AND first_seq >=
       coalesce((SELECT max(first_seq) FROM ticks WHERE run = ?1 AND first_seq <= ?2), 0) ORDER BY first_seq`,
    { returnArrays: true },
  )
  const dataVersion = db.prepare('PRAGMA data_version', { returnArrays: true })
  const heads = new Map<string, Head>()
  const gathered = new Map<string, Gathered>()
  /** Runs that count towards `mostHeld`, oldest first, with their size in characters. */
  const held = new Map<string, number>()
  let heldLength = 0
  let version: unknown

  function page(run: string, after: number): Entry[] {
    const texts: string[] = []
    let length = 0
    for (const row of select.iterate(run, after + 1)) {
      const text = String((row as unknown as [string])[0])
      texts.push(text)
      length += text.length
      if (length >= pageLength || texts.length === pageRows) break
    }
    const entries = decodeEntries(texts)
    // The cursor may be inside the first row.
    const from = entries.findIndex(({ seq }) => seq > after)
    return from < 0 ? [] : entries.slice(from)
  }

  function rowOf(run: string): RunRow | undefined {
    return gathered.get(run)?.row ?? heads.get(run)?.row ?? runs.get(run)
  }

  /** Returns a function that tells whether an entry is stored or in the open transaction. */
  function storedEntries(run: string): (entry: Entry) => boolean {
    const written = gathered.get(run)?.entries ?? []
    let near: Entry[] = []
    return (entry) => {
      const { seq } = entry
      let stored = entryAt(written, seq) ?? entryAt(near, seq)
      if (stored === undefined) stored = (near = page(run, seq - 1))[0]
      return stored !== undefined && isSameEntry(stored, entry)
    }
  }

  function forget(run: string): void {
    letGo(run)
    heads.delete(run)
  }

  function letGo(run: string): void {
    heldLength -= held.get(run) ?? 0
    held.delete(run)
  }

  function hold(run: string, { length }: Recent): void {
    heldLength += length - (held.get(run) ?? 0)
    held.set(run, length)
    for (const oldest of held.keys()) {
      if (heldLength <= mostHeld) break
      const { row, recent } = heads.get(oldest)!
      if (row.status !== 'running') forget(oldest)
      else {
        recent.meet()
        letGo(oldest)
      }
    }
  }

  /** Drops the cache of a run that is not running and has no readers: a run may stay suspended for days. */
  function settle(run: string, { row, recent }: Head): void {
    const isRunning = row.status === 'running'
    // The reader that was just woken may have been the last one.
    if (heads.get(run)?.recent !== recent) return
    if (!recent.met || (!isRunning && recent.readers.size > 0)) hold(run, recent)
    else if (isRunning) letGo(run)
    else forget(run)
  }

  return {
    knows: (run) => heads.has(run),
    begin() {
      // The version changes when another connection commits: the cached rows may then be stale.
      const [now] = dataVersion.get() as unknown as [number]
      if (now !== version) {
        heads.clear()
        held.clear()
        heldLength = 0
      }
      version = now
    },
    apply(run, epoch, entries, lines) {
      const open = gathered.get(run)
      const before = rowOf(run)
      const known = checkAppend(run, before, epoch, entries, storedEntries(run))
      if (known === 'fenced') return 'fenced'
      if (known === entries.length) return 'duplicate'
      const rest = known === 0 ? entries : entries.slice(known)
      const text = known === 0 ? lines : encodeEntries(run, rest)
      const row = foldRow(before, run, epoch, rest)
      if (!open) gathered.set(run, { before, row, entries: [...rest], lines: text })
      else {
        open.row = row
        open.lines += open.lines === '' ? text : `\n${text}`
        for (const entry of rest) open.entries.push(entry)
      }
      return 'stored'
    },
    claim(run, epoch) {
      const before = rowOf(run)
      if (!before || before.epoch !== epoch || hasEnded(before.status)) return false
      const row: RunRow = { ...before, epoch: epoch + 1, status: 'running' }
      const open = gathered.get(run)
      if (open) open.row = row
      else gathered.set(run, { before, row, entries: [], lines: '' })
      return true
    },
    flush() {
      let pages = 0
      for (const [run, { before, row, entries, lines }] of gathered) {
        if (entries.length > 0) insert.run(run, entries[0]!.seq, row.lastSeq, lines)
        if (!before) runs.insert(row)
        else if (row.status === before.status && row.usage === before.usage) runs.advance(row)
        else runs.update(row)
        // The last pages of the table, its index and the runs.
        pages += 3 + lines.length / 4096
      }
      return pages
    },
    committed() {
      const done = [...gathered]
      gathered.clear()
      for (const [run, { row, entries, lines }] of done) {
        const known = heads.get(run)
        if (entries.length === 0) {
          // A claim. The run's next append is the first one here, unless this process has readers of it.
          if (known) known.row = row
          continue
        }
        const head = { row, recent: known?.recent ?? createRecent() }
        heads.set(run, head)
        head.recent.push(entries, lines.length)
        bell.ring(run)
        settle(run, head)
      }
    },
    rolledBack() {
      gathered.clear()
    },
    reader(run, after) {
      const position: Position = { seq: after }
      let joined: Recent | undefined
      return {
        pull() {
          const head = heads.get(run)
          const row = head?.row ?? runs.get(run)
          if (joined !== head?.recent) {
            joined?.readers.delete(position)
            joined = head?.recent
            joined?.readers.add(position)
            joined?.meet()
          }
          const { seq } = position
          if (!row || seq >= row.lastSeq) return row && hasEnded(row.status) ? 'end' : 'wait'
          const near = joined?.after(seq)
          const value = near ?? page(run, seq)
          const last = value.at(-1)
          if (!last)
            throw new Error(
              `no entry after seq ${seq}, but the last seq of the run is ${row.lastSeq}: the file is damaged`,
            )
          position.seq = last.seq
          return { value, stored: near === undefined, last: hasEnded(row.status) && last.seq >= row.lastSeq }
        },
        leave() {
          joined?.readers.delete(position)
          const head = heads.get(run)
          if (head && head.recent === joined && head.row.status !== 'running' && joined.readers.size === 0) forget(run)
        },
      }
    },
  }
}

/** `entries` have consecutive `seq`s. */
function entryAt(entries: readonly Entry[], seq: number): Entry | undefined {
  return entries[seq - (entries[0]?.seq ?? 0)]
}

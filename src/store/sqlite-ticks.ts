/** The `ticks` table: collects appends per transaction, reads pages, serves live readers. */
import type { DatabaseSync } from 'node:sqlite'
import type { Entry } from '../part/entry.ts'
import { hasEnded, type Appended } from '../part/log.ts'
import type { Bell } from './bell.ts'
import { checkAppend, isSameEntry } from './check-append.ts'
import type { Gathering } from './commit-queue.ts'
import { decodeEntries, encodeEntries } from './encode.ts'
import type { Puller } from './follow.ts'
import { createHeads } from './heads.ts'
import type { Position, Recent } from './recent.ts'
import { claimRow, foldRow, type StoredRow } from './run-row.ts'
import type { RunTable } from './sqlite-runs.ts'

/** Page limits: about 256 KB of text, or 256 rows. The row that reaches a limit is included. */
const pageLength = 256 * 1024
const pageRows = 256

/** What a transaction adds to a run. `before` is absent for a new run. */
interface Gathered {
  before: StoredRow | undefined
  row: StoredRow
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
  /** Whether this process claimed or started the run, which is running since. */
  owns(run: string): boolean
  /** Creates a reader: it gets cached entries if it keeps up, else pages of the table. `limit`: it needs no more entries. */
  reader(run: string, after: number, limit?: number): Puller<Entry[]>
}

export function createTicks(db: DatabaseSync, runs: RunTable, bell: Bell): Ticks {
  const insert = db.prepare('INSERT INTO ticks (run, first_seq, last_seq, entries) VALUES (?, ?, ?, ?)')
  const select = db.prepare(
    `SELECT entries FROM ticks WHERE run = ?1 AND first_seq >=
       coalesce((SELECT max(first_seq) FROM ticks WHERE run = ?1 AND first_seq <= ?2), 0) ORDER BY first_seq LIMIT ?3`,
    { returnArrays: true },
  )
  const dataVersion = db.prepare('PRAGMA data_version', { returnArrays: true })
  const heads = createHeads()
  const gathered = new Map<string, Gathered>()
  const owned = new Set<string>()
  let version: unknown

  function page(run: string, after: number, rows = pageRows): Entry[] {
    const texts: string[] = []
    let length = 0
    for (const row of select.iterate(run, after + 1, rows)) {
      const text = String((row as unknown as [string])[0])
      texts.push(text)
      length += text.length
      if (length >= pageLength) break
    }
    const entries = decodeEntries(texts)
    // The cursor may be inside the first row.
    const from = entries.findIndex(({ seq }) => seq > after)
    return from < 0 ? [] : entries.slice(from)
  }

  function rowOf(run: string): StoredRow | undefined {
    return gathered.get(run)?.row ?? heads.get(run)?.row ?? runs.stored(run)
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

  return {
    knows: (run) => heads.get(run) !== undefined,
    owns: (run) => owned.has(run),
    begin() {
      // The version changes when another connection commits: the cached rows may then be stale.
      const [now] = dataVersion.get() as unknown as [number]
      if (now !== version) heads.clear()
      version = now
    },
    apply(run, epoch, entries, lines) {
      const open = gathered.get(run)
      const before = rowOf(run)
      const known = checkAppend(run, before, epoch, entries, storedEntries(run))
      if (known === 'fenced') owned.delete(run)
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
      const row = claimRow(before, epoch)
      if (row === undefined) return false
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
        else if (row.status === before.status && row.usage === before.usage && row.open === before.open) {
          runs.advance(row)
        } else runs.update(row)
        // The last pages of the table, its index and the runs.
        pages += 3 + lines.length / 4096
      }
      return pages
    },
    committed() {
      const done = [...gathered]
      gathered.clear()
      for (const [run, { before, row, entries, lines }] of done) {
        if (row.status !== 'running') owned.delete(run)
        else if (row.epoch !== before?.epoch) owned.add(run)
        if (entries.length === 0) {
          // A claim. The run is not `known` before its next append, unless it is by now.
          const head = heads.get(run)
          if (head) head.row = row
          continue
        }
        const head = heads.add(run, row, entries, lines.length)
        bell.ring(run)
        heads.trim(run, head)
      }
    },
    rolledBack() {
      gathered.clear()
    },
    reader(run, after, limit = pageRows) {
      const position: Position = { seq: after }
      const rows = Math.max(1, Math.min(limit, pageRows))
      let joined: Recent | undefined
      return {
        pull() {
          const head = heads.get(run)
          const row = head?.row ?? runs.get(run)
          if (joined !== head?.recent) {
            joined?.readers.delete(position)
            joined = head?.recent
            joined?.readers.add(position)
            joined?.stopWaiting()
          }
          const { seq } = position
          if (!row || seq >= row.lastSeq) return row && hasEnded(row.status) ? 'end' : 'wait'
          const near = joined?.after(seq)
          const value = near ?? page(run, seq, rows)
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
          if (joined) heads.left(run, joined)
        },
      }
    },
  }
}

/** `entries` have consecutive `seq`s. */
function entryAt(entries: readonly Entry[], seq: number): Entry | undefined {
  return entries[seq - (entries[0]?.seq ?? 0)]
}

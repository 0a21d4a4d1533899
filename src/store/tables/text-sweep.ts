/**
 * Reads the texts of a run that came in deltas and wait for the full-text index, in one pass over its rows: of branches that speak at
 * once each row has deltas of all, and who read them text by text would read the rows as often as there are branches. A pass goes on
 * from slice to slice; what has become a piece is in the tables, so that another process can begin a pass anywhere.
 */
import type { DatabaseSync } from 'node:sqlite'
import { isDelta } from '../../part/entry.ts'
import { BlockPiece, type Block } from './block-piece.ts'
import { createRowDecoder } from './row-entries.ts'
import { createTickReader } from './tick-reader.ts'

/** Texts of one pass: what is read of them is in memory until it is a piece. */
const most = 100

export interface TextSweep {
  /** Call it when a run was removed: its number may be that of another one. */
  check(): void
  /**
   * Reads on until the time is over or the pass is complete; at least one row. Call it inside a transaction. `run` and `seq`: the text
   * that waits first. Returns false if that did not come in deltas.
   */
  step(run: number, seq: number, isOver: () => boolean): boolean
}

interface Waiting {
  block: Block
  start: number
  /** The row with this entry is the first that it needs. */
  from: number
}

interface Pass {
  run: number
  /** The run's id. */
  id: string
  /** The run that the rows belong to. */
  log: string
  /** Rows up to this entry were read. */
  at: number
  /** In the order in which they begin. */
  upcoming: Waiting[]
  open: Map<string, BlockPiece>
  /** Pieces that are complete, and where the next one of the text begins. */
  ready: [piece: BlockPiece, next: number | undefined][]
}

/** `found` is called for each piece; `next`: where the next one begins, if it is not the last. */
export function createTextSweep(
  db: DatabaseSync,
  found: (run: number, piece: BlockPiece, next: number | undefined) => void,
): TextSweep {
  const reader = createTickReader(db)
  const decode = createRowDecoder()
  const waiting = db.prepare(
    `SELECT l.seq, l.start, b.type, b.event_id, b.tick_seq, b.last_seq, r.id AS log
     FROM indexed_later l LEFT JOIN indexed_blocks b ON b.run = l.run AND b.seq = l.seq LEFT JOIN runs r ON r.number = b.log
     WHERE l.run = ? AND l.seq >= ? ORDER BY l.seq LIMIT ${most}`,
  )
  const idOf = db.prepare('SELECT id FROM runs WHERE number = ?')
  let pass: Pass | undefined

  function begin(run: number, seq: number): Pass {
    const rows = waiting.all(run, seq)
    const log = String(rows[0]?.log)
    const upcoming: Waiting[] = []
    for (const row of rows) {
      // What did not come in deltas has its turn before the texts behind it.
      if (row.type === null || row.log !== log) break
      const [first, start, last] = [Number(row.seq), Number(row.start), Number(row.last_seq ?? 0)]
      const block = { seq: first, type: String(row.type), id: String(row.event_id), last }
      upcoming.push({ block, start, from: Math.max(Number(row.tick_seq), first, start) })
    }
    upcoming.sort((a, b) => a.from - b.from)
    return { run, id: String(idOf.get(run)?.id), log, at: 0, upcoming, open: new Map(), ready: [] }
  }

  /** Takes up what begins up to this entry. Of two texts with one id, the second waits for the next pass. */
  function open({ upcoming, open: pieces }: Pass, to: number): void {
    while (upcoming.length > 0 && upcoming[0]!.from <= to) {
      const { block, start } = upcoming.shift()!
      const key = `${block.type}:${block.id}`
      if (!pieces.has(key)) pieces.set(key, new BlockPiece(block, start))
    }
  }

  function addRow({ open: pieces, ready }: Pass, id: number, text: string): void {
    for (const entry of decode(id, text)) {
      if (!isDelta(entry)) continue
      const key = `${entry.type}:${entry.id}`
      const piece = pieces.get(key)
      if (piece === undefined || piece.add(entry)) continue
      ready.push([piece, piece.at])
      const next = new BlockPiece(piece.block, piece.at)
      next.add(entry)
      pieces.set(key, next)
    }
  }

  /** Those that end up to this entry, in the order in which they end. */
  function close({ open: pieces, ready }: Pass, to: number): void {
    const ended = [...pieces].filter(([, { block }]) => block.last <= to)
    for (const [key, piece] of ended.sort(([, a], [, b]) => a.block.last - b.block.last)) {
      pieces.delete(key)
      ready.push([piece, undefined])
    }
  }

  /** Reads the next row. */
  function read(current: Pass): void {
    const first = current.open.size > 0 ? current.at + 1 : current.upcoming[0]!.from
    let to = Infinity
    for (const { id, lastSeq, entries } of reader.from(current.log, first)) {
      to = lastSeq
      open(current, to)
      addRow(current, id, entries)
      break
    }
    // If the log has no more, nothing of them is left.
    if (to === Infinity) open(current, to)
    current.at = to
    close(current, to)
  }

  return {
    check() {
      if (pass !== undefined && idOf.get(pass.run)?.id !== pass.id) pass = undefined
    },
    step(run, seq, isOver) {
      if (pass?.run !== run) pass = begin(run, seq)
      if (isEmpty(pass)) {
        pass = undefined
        return false
      }
      do {
        if (pass.ready.length === 0) read(pass)
        const [piece, next] = pass.ready.shift() ?? []
        if (piece !== undefined) found(run, piece, next)
      } while (!isEmpty(pass) && !isOver())
      if (isEmpty(pass)) pass = undefined
      return true
    },
  }
}

function isEmpty({ ready, open, upcoming }: Pass): boolean {
  return ready.length + open.size + upcoming.length === 0
}

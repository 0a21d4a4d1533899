/**
 * Adds texts to the full-text index. A text that is complete in the current row is added at once. Others wait in `indexed_later`, and are read
 * again in pieces: long texts, each of which would be a long transaction, and texts with deltas in several rows. Later texts wait as well: a search
 * finds the last text of a run first.
 */
import type { DatabaseSync } from 'node:sqlite'
import { isDelta, type Entry } from '../../part/entry.ts'
import type { SearchHit } from '../../part/records.ts'
import { decodeEntries } from '../encode.ts'
import { entryText, spaced, textKinds } from './entry-texts.ts'
import { scopeTerms, titleRow, titleTerms } from './index-terms.ts'
import { pieceLength, BlockPiece, type TextBlock, createPieceReader, createRowDecoder } from './piece-reader.ts'
import { createTickReader } from './tick-reader.ts'

/** Maximum characters of the log that are parsed for one text: about 0.3 ms. */
const mostParsed = 64 * 1024

/** Call all of them inside a transaction. */
export interface TextIndex {
  /** Call it first in each transaction: another process may have continued. `isRemoved`: a run was removed since. */
  begin(isRemoved: boolean): void
  /** The text of an entry that contains one. `length`: of its line. */
  addEntry(run: number, entry: Entry, length: number): void
  /** The text of a block that began with entry `seq`. `end` is its last entry; its line begins at character `at` of the row. */
  addBlock(run: number, seq: number, end: Entry & { id: string }, place: { row: string; at: number }): void
  /** Continues with the waiting texts: with one piece, or until the time is over. Returns false if none waits. */
  step(isOver: () => boolean): boolean
  /** Before COMMIT. */
  save(): void
}

export function createTextIndex(db: DatabaseSync): TextIndex {
  const pieces = createPieceReader(db)
  const sweep = createTextSweep(db, (run, { block, start, text }, next) => {
    put(run, block.seq, start, () => {
      add(run, block.seq, start, block.type === 'text-delta' ? 'text' : 'reasoning', text)
      return next
    })
  })
  // Not RETURNING: see `statements.ts`.
  const addText = db.prepare('INSERT INTO indexed_texts (id, run, seq, start, kind) VALUES (?, ?, ?, ?, ?)')
  const lastText = db.prepare('SELECT max(id) AS id FROM indexed_texts WHERE id > ? AND id < ?')
  const rowOf = db.prepare('SELECT agent, thread_id, owner, tenant, title_folded FROM runs WHERE number = ?')
  const addWords = db.prepare('INSERT INTO search (rowid, text) VALUES (?, ?)')
  const first = db.prepare('SELECT run, seq, start FROM indexed_later LIMIT 1')
  const waits = db.prepare('SELECT start FROM indexed_later WHERE run = ? AND seq = ?')
  const addLater = db.prepare('INSERT OR IGNORE INTO indexed_later (run, seq, start) VALUES (?, ?, 0)')
  const goOn = db.prepare('UPDATE indexed_later SET start = ? WHERE run = ? AND seq = ?')
  const done = db.prepare('DELETE FROM indexed_later WHERE run = ? AND seq = ?')
  let isWaiting = true

  /** The last run. */
  let scope = { run: 0, terms: '', title: '' }
  /** The index writes a segment whenever a number is below the last one: such rows wait for the end of the transaction. */
  let last = 0
  let early: [row: number, text: string][] = []

  function addRow(row: number, text: string): void {
    if (row < last) return void early.push([row, text])
    last = row
    addWords.run(row, text)
  }

  function termsOf(run: number): string {
    if (scope.run !== run) {
      const {
        agent,
        thread_id: threadId,
        owner,
        tenant,
        title_folded: title,
      } = (rowOf.get(run) ?? {}) as Record<string, string>
      scope = { run, terms: scopeTerms({ agent, threadId, owner, tenant }).join(' '), title: title ?? '' }
    }
    return scope.terms
  }

  function add(run: number, seq: number, start: number, kind: SearchHit['kind'], text: string): void {
    if (text.trim() === '') return
    const [from, end] = [titleRow(run), titleRow(run + 1)]
    const row = Number(lastText.get(from, end)?.id ?? from) + 1
    if (row === end) throw new RangeError(`run ${run} has too many texts for the index`)
    addText.run(row, run, seq, start, kind)
    addRow(row, `${spaced(text)} ${termsOf(run)}`)
  }

  function addTitle(run: number): void {
    const terms = termsOf(run)
    if (scope.title !== '') addRow(titleRow(run), `${titleTerms(scope.title).join(' ')} ${terms}`)
  }

  /** `addPiece` adds a piece of a waiting text, and returns the start of the next one. */
  function put(run: number, seq: number, start: number, addPiece: () => number | undefined): void {
    // Another process has added it.
    if (waits.get(run, seq)?.start !== start) return
    let next: number | undefined
    try {
      next = addPiece()
    } catch (error) {
      // Also a text that ends twice, which is there already.
      if (!isOfEntry(error)) throw error
    }
    if (next === undefined) done.run(run, seq)
    else goOn.run(next, run, seq)
  }

  /** At once if the text is known. */
  function addOrWait(run: number, seq: number, kind: SearchHit['kind'], text: string | undefined): void {
    if (text !== undefined) return add(run, seq, 0, kind, text)
    addLater.run(run, seq)
    isWaiting = true
  }

  return {
    begin(isRemoved) {
      isWaiting = first.get() !== undefined
      pieces.forget()
      // The agent of a run may have changed, and its number may be that of another.
      scope = { run: 0, terms: '', title: '' }
      last = 0
      early = []
      if (isRemoved) sweep.check()
    },
    addEntry(run, entry, length) {
      if (entry.type === 'run-start' && entry.seq === 1) addTitle(run)
      const kind = textKinds[entry.type]
      if (kind === undefined || kind === 'text' || kind === 'reasoning') return
      const text = isWaiting || length >= pieceLength ? undefined : entryText(entry)
      // A short line may refer to a long text.
      addOrWait(run, entry.seq, kind, text === undefined || text.length >= pieceLength ? undefined : text)
    },
    addBlock(run, seq, end, place) {
      const kind = end.type === 'text-end' ? 'text' : 'reasoning'
      addOrWait(run, seq, kind, isWaiting ? undefined : textIn(place, seq, `${kind}-delta`, end.id))
    },
    step(isOver) {
      const row = first.get()
      if (row === undefined) return false
      const [run, seq, start] = [Number(row.run), Number(row.seq), Number(row.start)]
      if (sweep.step(run, seq, isOver)) return true
      put(run, seq, start, () => {
        const piece = pieces.at(run, seq, start)
        if (piece !== undefined) add(run, seq, start, piece.kind, piece.text)
        return piece?.next
      })
      return true
    },
    save() {
      for (const [row, text] of early.sort(([a], [b]) => a - b)) addWords.run(row, text)
      early = []
    },
  }
}

/** Undefined if the row does not have all of it, if it has more than one piece, or if a line is damaged. */
function textIn(
  { row, at }: { row: string; at: number },
  seq: number,
  type: Entry['type'],
  id: string,
): string | undefined {
  const start = row.lastIndexOf(`{"seq":${seq},`, at)
  if (start < 0 || at - start > mostParsed) return undefined
  const pieces: string[] = []
  try {
    for (const entry of decodeEntries([row.slice(start, at - 1)])) {
      if (isDelta(entry) && entry.type === type && entry.id === id) pieces.push(entry.delta)
    }
  } catch {
    return undefined
  }
  const text = pieces.join('')
  return text.length < pieceLength ? text : undefined
}

/*
 * Reads the waiting delta texts of a run in one pass over its rows: with parallel branches each row has deltas of all, and reading text by text
 * would read the rows once per branch. A pass continues from slice to slice; complete pieces are in the tables, so that another process can start a
 * pass anywhere.
 */

/** Maximum number of texts in one pass: their incomplete pieces are in memory. */
const most = 100

interface TextSweep {
  /** Call it when a run was removed: its number may be reused. */
  check(): void
  /**
   * Continues until the time is over or the pass is complete; at least one row. Call it inside a transaction. `run` and `seq`: the first waiting
   * text. Returns false if that did not come in deltas.
   */
  step(run: number, seq: number, isOver: () => boolean): boolean
}

interface PendingBlock {
  block: TextBlock
  start: number
  /** The row with this entry is the first one to read. */
  from: number
}

interface Pass {
  run: number
  /** The run's id. */
  id: string
  /** The run that owns the rows. */
  log: string
  /** Rows up to this entry were read. */
  at: number
  /** In the order of their beginnings. */
  upcoming: PendingBlock[]
  open: Map<string, BlockPiece>
  /** Complete pieces, each with the start of the text's next piece. */
  ready: [piece: BlockPiece, next: number | undefined][]
}

/** `found` is called for each piece; `next`: the start of the next one, if any. */
function createTextSweep(
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
    const upcoming: PendingBlock[] = []
    for (const row of rows) {
      // A text without deltas comes before the texts after it.
      if (row.type === null || row.log !== log) break
      const [first, start, last] = [Number(row.seq), Number(row.start), Number(row.last_seq ?? 0)]
      const block = { seq: first, type: String(row.type), id: String(row.event_id), last }
      upcoming.push({ block, start, from: Math.max(Number(row.tick_seq), first, start) })
    }
    upcoming.sort((a, b) => a.from - b.from)
    return { run, id: String(idOf.get(run)?.id), log, at: 0, upcoming, open: new Map(), ready: [] }
  }

  /** Opens texts that begin up to this entry. Of two texts with one id, the second waits for the next pass. */
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

  /** Closes texts that end up to this entry, in the order of their ends. */
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
    // The log has no more entries, so these texts are incomplete.
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

/** Whether the error is caused by the entry, not by the file: programs may append entries with fields of the wrong type. */
export function isOfEntry(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  const constraint = 19
  return code !== 'ERR_SQLITE_ERROR' || (Number(errcode) & 0xff) === constraint
}

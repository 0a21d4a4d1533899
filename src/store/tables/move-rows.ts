/** Corrects the places of entries after rows of `ticks` were merged. Call it inside the same transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { decodeLine } from '../encode.ts'
import { tickLines } from './tick-reader.ts'

/** The merged rows of `ticks`. */
export interface Moved {
  firstSeq: number
  lastSeq: number
  /** The remaining row. */
  tick: number
  text: string
}

/** For a run and its forks, which share its rows up to their fork points. */
export function createMove(db: DatabaseSync): (run: string, moved: Moved) => void {
  const sharing = db.prepare(
    `WITH RECURSIVE branch (run, seq) AS (
       SELECT ?, 9e15 UNION SELECT forks.run, min(forks.seq, branch.seq) FROM forks JOIN branch ON forks.source = branch.run
     ) SELECT r.number, b.seq FROM branch b JOIN runs r ON r.id = b.run`,
  )
  const number = db.prepare('SELECT number FROM runs WHERE id = ?')
  const moveEvent = db.prepare('UPDATE indexed_events SET tick = ?, at = ?, length = ? WHERE run = ? AND seq = ?')
  // A block begins in the row of its `tick_seq`.
  const moveBlocks = db.prepare(
    'UPDATE indexed_blocks SET tick_seq = ?1 WHERE run = ?4 AND seq BETWEEN ?1 AND ?2 AND log = ?3',
  )
  return (run, { firstSeq, lastSeq, tick, text }) => {
    const runs = sharing.all(run)
    const log = number.get(run)?.number
    if (log === undefined) return
    for (const each of runs) moveBlocks.run(firstSeq, lastSeq, log, each.number!)
    for (const line of tickLines(text)) {
      const seq = line.isDelta ? undefined : seqOf(line.text)
      if (seq === undefined) continue
      for (const each of runs) if (seq <= Number(each.seq)) moveEvent.run(tick, line.at, line.length, each.number!, seq)
    }
  }
}

/** The prefix of lines that this version writes. */
export function seqOf(line: string): number | undefined {
  const [, digits] = /^\{"seq":(\d+),/u.exec(line) ?? []
  return digits === undefined ? decodeLine(line)[0]?.seq : Number(digits)
}

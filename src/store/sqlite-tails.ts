/** Adds rows to `ticks`, and says when they become a group (`sqlite-groups.ts`). Call it inside a transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { mostInGroup, type Group, type TickGroups, type TickRow } from './sqlite-groups.ts'
import { LeanMap } from '../async/lean-map.ts'

export interface Added {
  /** The id of the row. */
  id: number
  /** The last row of the run's tail from now on; undefined if it has none. */
  last: number | undefined
  /** A group that is to be added to the run, once it has a number. */
  group: Group | undefined
}

export interface Tails {
  /** Adds a row to a run whose tail ends with `last`. `rests`: the run waits or has ended, so its tail becomes a group. */
  add(run: string, last: number | undefined, row: Omit<TickRow, 'id'>, rests: boolean): Added
  /** Another process goes on with the run. */
  forget(run: string): void
}

export function createTails(db: DatabaseSync, groups: TickGroups): Tails {
  const insert = db.prepare('INSERT INTO ticks (run, prev, first_seq, last_seq, entries) VALUES (?, ?, ?, ?, ?)')
  /** The tails of runs that this process writes, and where each begins. Only true of a run whose `last_tick` is the last id. */
  const known = new LeanMap<{ from: number; ids: number[] }>()

  function tailOf(run: string, last: number): { from: number; ids: number[] } {
    let tail = known.get(run)
    if (tail?.ids.at(-1) === last) return tail
    const ids = groups.tail(last)
    tail = { from: groups.firstSeqOf(ids[0]!), ids }
    known.set(run, tail)
    return tail
  }

  return {
    add(run, last, { firstSeq, lastSeq, entries }, rests) {
      const id = Number(insert.run(run, last ?? null, firstSeq, lastSeq, entries).lastInsertRowid)
      const tail = last === undefined ? undefined : tailOf(run, last)
      if (rests || (tail !== undefined && tail.ids.length >= mostInGroup - 1)) {
        known.delete(run)
        const ids = tail === undefined ? [id] : [...tail.ids, id]
        return { id, last: undefined, group: { firstSeq: tail?.from ?? firstSeq, lastSeq, ids } }
      }
      if (tail === undefined) known.set(run, { from: firstSeq, ids: [id] })
      else tail.ids.push(id)
      return { id, last: id, group: undefined }
    },
    forget: (run) => void known.delete(run),
  }
}

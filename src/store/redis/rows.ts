/** Reads the row of a run. */
import type { RunStatus } from '../../part/log.ts'
import type { StoredRow } from '../run-row.ts'
import type { Connection } from './connection.ts'

/** What is stored of a run. */
export interface StoredRun {
  row: StoredRow
  /** The process that runs it; empty: nobody. */
  owner: string
}

/** The fields of the hash that {@link toRow} takes, in this order. */
export const rowFields = ['row', 'epoch', 'seq', 'at', 'status'] as const

/** A row from its JSON, and from what is kept beside it because it changes with each append. */
export function toRow([row, epoch, seq, at, status]: readonly string[]): StoredRow {
  const known = JSON.parse(row!) as StoredRow
  return { ...known, epoch: Number(epoch), lastSeq: Number(seq), updatedAt: Number(at), status: status as RunStatus }
}

export function createRows({ keys, ask }: Connection) {
  return {
    async load(run: string): Promise<StoredRun | undefined> {
      const key = keys.run(run)
      const values = (await ask(`get run ${run}`, key, ['HMGET', key, ...rowFields, 'owner'])) as (string | null)[]
      if (values[0] === null) return undefined
      return { row: toRow(values as string[]), owner: values[5] ?? '' }
    },
  }
}

export type Rows = ReturnType<typeof createRows>

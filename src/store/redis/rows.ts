/** Reads the row of a run. */
import type { StoredRow } from '../run-row.ts'
import type { RedisConnection } from './connection.ts'
import type { ForkTimes } from './fork-times.ts'
import { damagedIs } from './damage-script.ts'
import { otherFields, readRow, rowFields } from './stored-row.ts'

/** The stored data of a run. */
export interface StoredRun {
  row: StoredRow
  /** The owner process; empty if there is none. */
  owner: string
}

export function createRows({ keys, ask }: RedisConnection, forkTimes: ForkTimes) {
  async function load(run: string): Promise<StoredRun | undefined> {
    const key = keys.run(run)
    const read = (fields: readonly string[]) => ask(`get run ${run}`, key, ['HMGET', key, ...fields])
    const values = (await read([...rowFields, 'owner', 'origin'])) as (string | null)[]
    if (values.every((value) => value === null)) return undefined
    const { row, isDamaged } = readRow(run, values)
    const owner = values[5] ?? ''
    if (!isDamaged) return { row: await forkTimes.correct(row, values[6]), owner }
    return { row: readRow(run, values, (await read(otherFields)) as (string | null)[]).row, owner }
  }

  return {
    load,
    /** The same for a list, which skips unreadable runs. */
    find: (run: string): Promise<StoredRun | undefined> => load(run).catch(damagedIs(undefined)),
  }
}

export type Rows = ReturnType<typeof createRows>

/** A store whose tables lag behind its log. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../../../part/log.ts'
import { views } from '../views.ts'

export const root = mkdtempSync(join(tmpdir(), 'millrace-indexer-'))

let count = 0

export const newFile = () => join(root, `${count++}.db`)

/** All rows of all views. */
export async function allOf(store: Store): Promise<unknown> {
  const tables = views.map(async ([name]) => {
    const { rows } = await store.records!.query(`SELECT * FROM ${name}`, { limit: 1e6 })
    return [name, rows.map((row) => JSON.stringify(row)).sort()]
  })
  return Promise.all(tables)
}

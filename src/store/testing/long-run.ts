/** A database with a long run. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'

export const folder = mkdtempSync(join(tmpdir(), 'millrace-slices-'))

let files = 0

export const newFile = () => join(folder, `${++files}.db`)

export const textOf = (entries: readonly Entry[]) =>
  entries.map((entry) => (entry.type === 'text-delta' ? entry.delta : '')).join('')

export async function record(store: Store, run: string, entries: readonly Entry[], size: number): Promise<void> {
  for (let i = 0; i < entries.length; i += size) await store.log.append(run, 1, entries.slice(i, i + size))
}

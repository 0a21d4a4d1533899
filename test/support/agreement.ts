/** Whether what is made of the log of a data folder agrees with it: the files of its runs, and the tables over it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Store } from '../../src/part/log.ts'
import { encodeEntries } from '../../src/store/encode.ts'
import { views } from '../../src/store/tables/views.ts'

/** The log of a run as its file has it. */
export async function logText(store: Store, run: string): Promise<string> {
  let text = ''
  for await (const batch of store.log.read(run)) if (batch.length > 0) text += `${encodeEntries(run, batch)}\n`
  return text
}

/** The file of a run; '' if there is none. */
export function fileText(data: string, run: string): string {
  try {
    return readFileSync(join(data, 'runs', `${run}.ndjson`), 'utf8')
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('ENOENT')
    return ''
  }
}

/** Whole lines are those of the log; what follows them is the beginning of its next line, which a crash has cut off. */
export function expectBeginning(file: string, log: string): void {
  const whole = file.slice(0, file.lastIndexOf('\n') + 1)
  for (const line of whole.split('\n')) if (line !== '') JSON.parse(line)
  expect(log.startsWith(file), `not the beginning of the log: ${file.slice(-400)}`).toBe(true)
}

/** All rows of all views, once they are filled, and what a search for the words finds. */
export async function tablesOf({ records }: Store, q: string): Promise<unknown> {
  await records!.settle()
  const tables = views.map(async ([name]) => {
    const { rows } = await records!.query(`SELECT * FROM ${name}`, { limit: 1e6 })
    return [name, rows.map((row) => JSON.stringify(row)).sort()] as const
  })
  const hits = (await records!.search({ q, limit: 1000 })).map((hit) => JSON.stringify(hit)).sort()
  return Object.fromEntries([...(await Promise.all(tables)), ['search', hits] as const])
}

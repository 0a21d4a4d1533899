/** Archives in files: what every archive keeps, and what is in the files. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gunzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { collect } from '../contract/tools.contract.ts'
import { noon } from '../example-run.contract.ts'
import { archiveContract, put, runOf } from './archive.contract.ts'
import { openArchive } from './archive.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-archive-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let count = 0

describe.each(['folder', 'file.db'])('an archive in a %s', (name) => {
  archiveContract(() => join(root, `${++count}`, name))

  test('a place that cannot be written is told with its path as detail only', async () => {
    const file = join(root, `${++count}-file`)
    writeFileSync(file, '')
    const failing = openArchive(join(file, name))
    const failure = await put(failing, 'r').then(
      () => undefined,
      (error: unknown) => error as Error & { detail: string },
    )
    expect(failure).toMatchObject({ code: 'store-failed', detail: expect.stringContaining(file) })
    expect(failure!.message).not.toContain(file)
  })
})

describe('a folder', () => {
  test('has one file per run, by month: an export that only its owner can read', async () => {
    const path = join(root, `${++count}`)
    const archive = openArchive(path)
    const place = await put(archive, 'r', runOf('r'))
    expect(place).toBe(new Date(noon).toISOString().slice(0, 7))
    const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((found) => found.isFile())
    expect(files.map(({ name }) => name)).toEqual(['r.ndjson.gz'])
    const text = gunzipSync(readFileSync(join(files[0]!.parentPath, 'r.ndjson.gz'))).toString()
    expect(
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual(runOf('r'))
    expect(existsSync(join(path, '.new'))).toBe(true)
  })

  test('old leftovers of a crash are removed, and a truncated file is reported', async () => {
    const path = join(root, `${++count}`)
    const archive = openArchive(path)
    const place = await put(archive, 'r')
    for (const name of ['old', 'new']) writeFileSync(join(path, '.new', name), 'half')
    utimesSync(join(path, '.new', 'old'), 1, 1)
    await archive.tidy()
    expect(readdirSync(join(path, '.new'))).toEqual(['new'])
    const file = readdirSync(path, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('.gz'))!
    for (const keep of [0, 30, -3]) {
      writeFileSync(join(path, file), readFileSync(join(path, file)).subarray(0, keep))
      await expect(collect(archive.read('r', place))).rejects.toMatchObject({ code: 'store-failed' })
      await put(archive, 'r')
    }
    await expect(collect(archive.read('r', '../..'))).rejects.toMatchObject({ code: 'store-failed' })
  })
})

test('a SQLite archive is a store: other programs read its tables', async () => {
  const path = join(root, `${++count}`, 'millrace.db')
  const archive = openArchive(path)
  await put(archive, 'r')
  await archive.close()
  const db = new DatabaseSync(path, { readOnly: true })
  expect(db.prepare('SELECT id, status, epoch FROM runs').all()).toEqual([{ id: 'r', status: 'completed', epoch: 3 }])
  db.close()
})

/** Both archives keep what they were given, whole or not at all. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gunzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createCompaction } from '../../fold/compaction.ts'
import type { Entry } from '../../part/entry.ts'
import { collect } from '../contract/tools.contract.ts'
import { entry, exampleRun, noon } from '../example-run.contract.ts'
import { verify } from '../ndjson.ts'
import { foldRow } from '../run-row.ts'
import { openArchive, type Archive } from './archive.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-archive-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let count = 0

const hostile = '\u2028"\\\u0000\ud83d\ude00\r'

/** A merged run with a text of so many deltas, and what could break a line format. */
function runOf(id: string, deltas = 20): Entry[] {
  const entries = exampleRun(id, deltas)
  const end = entries.pop()!
  const odd = entry(end.seq, { type: 'data', name: hostile, data: [hostile.repeat(3)] })
  return createCompaction()([...entries, odd, { ...end, seq: end.seq + 1 }])
}

const rowOf = (entries: readonly Entry[], id: string) => foldRow(undefined, id, 3, entries)

async function* inPieces(entries: readonly Entry[], length = 3): AsyncGenerator<Entry[]> {
  for (let i = 0; i < entries.length; i += length) yield entries.slice(i, i + length)
}

async function put(archive: Archive, id: string, entries = runOf(id), length = 3): Promise<string> {
  await archive.put(rowOf(entries, id), inPieces(entries, length))
  return archive.placeOf(rowOf(entries, id))
}

describe.each(['folder', 'file.db'])('an archive in a %s', (name) => {
  let path: string
  let archive: Archive
  beforeEach(() => {
    path = join(root, `${++count}`, name)
    archive = openArchive(path)
  })
  afterEach(() => archive.close())

  test('gives back what it was given, in batches; the same again changes nothing', async () => {
    const ids = ['r', '../../r', 'R/\u2028?', `long-${'x'.repeat(60)}`]
    const places = new Map<string, string>()
    for (const id of ids) places.set(id, await put(archive, id))
    for (const id of ids) expect(await put(archive, id)).toBe(places.get(id))
    for (const id of ids) {
      const entries = await collect(archive.read(id, places.get(id)!))
      expect(entries).toEqual(runOf(id))
      expect(verify(entries)).toEqual([])
    }
    // Many batches, of which a reader may take the first only.
    const long = exampleRun('long', 20_000)
    const place = await put(archive, 'long', long, 2000)
    expect(await collect(archive.read('long', place))).toEqual(long)
    for await (const batch of archive.read('long', place)) {
      expect(batch.length).toBeLessThan(long.length)
      break
    }
    expect(await archive.size()).toBeGreaterThan(0)
  })

  test('another instance reads it, and writes the same at the same time', async () => {
    const other = openArchive(path)
    const [place] = await Promise.all([put(archive, 'r'), put(other, 'r'), put(other, 'r')])
    expect(await collect(other.read('r', place))).toEqual(runOf('r'))
    await other.close()
  })

  test('a removed run is gone; to remove it again is harmless', async () => {
    const place = await put(archive, 'r')
    await put(archive, 'stays')
    await archive.remove('r', place)
    await archive.remove('r', place)
    await expect(collect(archive.read('r', place))).rejects.toMatchObject({ code: 'store-failed' })
    expect(await collect(archive.read('stays', place))).toEqual(runOf('stays'))
  })

  test('what cannot be read to its end is not there, and can be put again', async () => {
    async function* broken() {
      yield runOf('r').slice(0, 4)
      throw new Error('the connection is lost')
    }
    await expect(archive.put(rowOf(runOf('r'), 'r'), broken())).rejects.toThrow()
    await expect(collect(archive.read('r', name === 'folder' ? '2024-01' : 'db'))).rejects.toMatchObject({
      code: 'store-failed',
    })
    expect(await collect(archive.read('r', await put(archive, 'r')))).toEqual(runOf('r'))
  })

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
  test('has one file for each run, by month, which is an export and readable by its owner only', async () => {
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

  test('what a crash has left is removed when it is old, and a cut file is told', async () => {
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

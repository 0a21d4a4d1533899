/** The contract of every archive: it stores a run whole or not at all. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createCompaction } from '../../fold/compaction.ts'
import type { Entry } from '../../part/entry.ts'
import { collect } from '../contract/tools.contract.ts'
import { entry, exampleRun } from '../example-run.contract.ts'
import { verify } from '../ndjson.ts'
import { foldRow } from '../run-row.ts'
import { openArchive, type Archive } from './archive.ts'

const hostile = '\u2028"\\\u0000\ud83d\ude00\r'

/** A merged run with `deltas` deltas, and characters that could break a line format. */
export function runOf(id: string, deltas = 20): Entry[] {
  const entries = exampleRun(id, deltas)
  const end = entries.pop()!
  const odd = entry(end.seq, { type: 'data', name: hostile, data: [hostile.repeat(3)] })
  return createCompaction()([...entries, odd, { ...end, seq: end.seq + 1 }])
}

export const rowOf = (entries: readonly Entry[], id: string) => foldRow(undefined, id, 3, entries)

async function* inPieces(entries: readonly Entry[], length = 3): AsyncGenerator<Entry[]> {
  for (let i = 0; i < entries.length; i += length) yield entries.slice(i, i + length)
}

export async function put(archive: Archive, id: string, entries = runOf(id), length = 3): Promise<string> {
  await archive.put(rowOf(entries, id), inPieces(entries, length))
  return archive.placeOf(rowOf(entries, id))
}

/** `fresh`: the place of an empty archive. */
export function archiveContract(fresh: () => Promise<string> | string): void {
  let path: string
  let archive: Archive
  beforeEach(async () => {
    path = await fresh()
    archive = openArchive(path)
  })
  afterEach(() => archive.close())

  test('returns a stored run in batches; storing it again changes nothing', async () => {
    const ids = ['r', '../../r', 'R/\u2028?', `long-${'x'.repeat(60)}`, 'x'.repeat(400), `${'\u2028'.repeat(80)}y`]
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

  test('an unreadable run counts as absent and can be stored again', async () => {
    const runs: [string, Entry[], number][] = [
      ['r', runOf('r'), 4],
      ['long', exampleRun('long', 20_000), 18_000],
    ]
    for (const [id, entries, cut] of runs) {
      async function* broken() {
        yield* inPieces(entries.slice(0, cut), 2000)
        throw new Error('the connection is lost')
      }
      await expect(archive.put(rowOf(entries, id), broken())).rejects.toThrow()
      const place = archive.placeOf(rowOf(entries, id))
      await expect(collect(archive.read(id, place))).rejects.toMatchObject({ code: 'store-failed' })
      await put(archive, id, entries, 2000)
      expect(await collect(archive.read(id, place))).toEqual(entries)
    }
  })
}

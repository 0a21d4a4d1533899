/**
 * An archive in a folder that all instances share: a network file system, a mounted bucket.
 *
 * `<folder>/<yyyy-mm>/<shard>/<run>.ndjson.gz` has the entries of a run, one per line, like an export. A file is written under a temporary name and
 * renamed when it is complete. So a crash leaves a file in `<folder>/.new`, and writing the run again replaces a file only with the same content.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createGunzip, createGzip } from 'node:zlib'
import type { Entry } from '../../part/entry.ts'
import { decodeEntries, encodeEntries } from '../encode.ts'
import { storeFailed } from '../store-error.ts'
import type { Archive } from './archive.ts'

/** Characters of a batch. */
const batchLength = 256 * 1024
/** An incomplete file that is older than this, in ms, is a leftover of a crash. */
const leftAfter = 3_600_000
/** A longer run id is replaced by a hash in the file's name. File systems take 255 bytes. */
const longestName = 200

export function folderArchive(folder: string): Archive {
  const root = resolve(folder)
  const fresh = join(root, '.new')

  /** `place`: the month in which the run started. */
  function fileOf(run: string, place: string): string {
    if (!/^\d{4}-\d\d$/u.test(place)) throw new Error(`no place of an archive folder: ${place}`)
    const hash = createHash('sha256').update(run).digest('hex')
    const name = encodeURIComponent(run)
    return join(root, place, hash.slice(0, 2), `${name.length > longestName ? hash : name}.ndjson.gz`)
  }

  async function write(file: string, run: string, entries: AsyncIterable<readonly Entry[]>): Promise<void> {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await mkdir(fresh, { recursive: true, mode: 0o700 })
    const unfinished = join(fresh, crypto.randomUUID())
    try {
      const handle = await open(unfinished, 'wx', 0o600)
      try {
        for await (const bytes of zipped(run, entries)) await handle.write(bytes)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(unfinished, file)
      await syncFolder(dirname(file))
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => undefined)
      throw error
    }
  }

  async function* read(run: string, place: string): AsyncGenerator<Entry[], void, void> {
    try {
      // An error of either stream becomes a read error.
      const unzipped = pipeline(createReadStream(fileOf(run, place)), createGunzip(), () => undefined)
      yield* entriesOf(unzipped)
    } catch (error) {
      throw storeFailed(`cannot read run ${run} in the archive`, root, error)
    }
  }

  const placeOf: Archive['placeOf'] = ({ startedAt }) => new Date(startedAt).toISOString().slice(0, 7)

  return {
    placeOf,
    async put(row, entries) {
      try {
        await write(fileOf(row.id, placeOf(row)), row.id, entries)
      } catch (error) {
        throw storeFailed(`cannot archive run ${row.id}`, root, error)
      }
    },
    read,
    async remove(run, place) {
      try {
        await rm(fileOf(run, place), { force: true })
      } catch (error) {
        throw storeFailed(`cannot remove run ${run} from the archive`, root, error)
      }
    },
    async size() {
      let bytes = 0
      for await (const file of filesIn(root)) bytes += (await stat(file).catch(() => undefined))?.size ?? 0
      return bytes
    },
    async tidy() {
      for (const name of await readdir(fresh).catch(() => [])) {
        const file = join(fresh, name)
        const written = await stat(file).catch(() => undefined)
        if (written !== undefined && written.mtimeMs < Date.now() - leftAfter) await rm(file, { force: true })
      }
    },
    close: async () => undefined,
  }
}

/** The bytes of the file. */
function zipped(run: string, entries: AsyncIterable<readonly Entry[]>): AsyncIterable<Buffer> {
  async function* lines() {
    for await (const batch of entries) if (batch.length > 0) yield `${encodeEntries(run, batch)}\n`
  }
  // The reader gets the error.
  return pipeline(lines, createGzip(), () => undefined)
}

async function* entriesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<Entry[], void, void> {
  const decoder = new StringDecoder('utf8')
  /** Complete lines, of which the last is still growing. */
  let pieces: string[] = []
  let length = 0
  let last: Entry | undefined
  for await (const chunk of bytes) {
    const text = decoder.write(chunk)
    const end = length + text.length < batchLength ? -1 : text.lastIndexOf('\n')
    length += text.length
    if (end < 0) {
      pieces.push(text)
      continue
    }
    const batch = decodeEntries([pieces.join('') + text.slice(0, end)])
    pieces = [text.slice(end + 1)]
    length = pieces[0]!.length
    last = batch.at(-1)
    yield batch
  }
  const rest = pieces.join('').replace(/\n$/u, '')
  const batch = rest === '' ? [] : decodeEntries([rest])
  last = batch.at(-1) ?? last
  if (last?.type !== 'run-end') throw new Error('the file has no end')
  if (batch.length > 0) yield batch
}

/** Makes new names in a folder survive a power cut, where the file system can. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder).catch(() => undefined)
  await handle?.sync().catch(() => undefined)
  await handle?.close()
}

async function* filesIn(folder: string): AsyncGenerator<string> {
  for (const found of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(folder, found.name)
    if (found.isDirectory()) yield* filesIn(path)
    else yield path
  }
}

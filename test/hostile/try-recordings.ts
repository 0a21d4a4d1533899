/** Mutated recordings through the check and everything that reads. */
import { MillraceError } from '../../src/part/error.ts'
import type { Entry } from '../../src/part/entry.ts'
import { verify } from '../../src/store/ndjson.ts'
import { decodeEntries } from '../../src/store/encode.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { importNdjson } from '../../src/record/transfer/import.ts'
import { legalRuns, mutated } from './mutate.ts'
import { readEverything } from './read-everything.ts'

const legal = legalRuns(1)

/** Names the seed of what fails. */
async function named<T>(seed: number, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error })
  }
}

/** Returns how many were imported. */
export async function tryRecordings(from: number, count: number): Promise<number> {
  let imported = 0
  for (let seed = from; seed < from + count; seed++) {
    const { text } = mutated(legal, seed)
    const store = memoryStore()
    const id = await named(seed, () => imports(store, text))
    if (id !== undefined) {
      imported++
      await named(seed, async () => {
        const entries: Entry[] = []
        for await (const batch of store.log.read(id)) entries.push(...batch)
        const faults = verify(entries, { open: true })
        if (faults.length > 0) throw new Error(faults.join('; '))
        await readEverything(entries)
      })
    }
    await store.close()
  }
  return imported
}

/** Undefined if it is refused as it should be: with the line, or because there is nothing. */
async function imports(store: ReturnType<typeof memoryStore>, text: string): Promise<string | undefined> {
  try {
    return (await importNdjson(store, text)).id
  } catch (error) {
    const isRefused = error instanceof MillraceError && error.code === 'invalid-recording' && error.status === 400
    if (!isRefused || !/: (?:line \d+: |no entries)/u.test(error.message)) throw error
    return undefined
  }
}

/** As if they stood in Redis, in a file, in an archive. Returns how many were read. */
export async function tryStored(from: number, count: number): Promise<number> {
  let read = 0
  for (let seed = from; seed < from + count; seed++) {
    const lines = mutated(legal, seed).text.split('\n').filter(isJson)
    const entries = decodeEntries(lines)
    if (entries[0]?.type !== 'run-start') continue
    read++
    await named(seed, () => readEverything(entries))
  }
  return read
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}

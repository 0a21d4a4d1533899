/**
 * A log of Millrace as a run of a store: its entries as they are, byte for byte, without secrets; its start says that the run is foreign. One whose
 * process crashed gets its end. The text is checked as it comes and kept as bytes, in a file if it is long; entries are made of it in pieces.
 */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { KeptView, RunRow, Store } from '../../part/log.ts'
import { asRecorded } from '../../part/recording.ts'
import type { Redactor } from '../../fold/redact.ts'
import { createNdjsonReader } from '../../store/ndjson.ts'
import { checkPlace } from './check-place.ts'
import { createEntryCleaner, type EntryCleaner } from './clean-entries.ts'
import { checkRecording, type CheckedRecording } from './check-recording.ts'
import { createImportFold, type ImportFold } from './import-fold.ts'
import { createSpool } from './spool.ts'

/** What an import came to. */
export interface Imported {
  id: string
  /** False if the store had the same run already. */
  isNew: boolean
  row: RunRow
}

/** Options of {@link importNdjson}. */
export interface ImportOptions {
  /** What errors call it. Default `The recording`. */
  name?: string
  /** Removes secrets before anything is stored: `runtime.redactor()`. */
  redactor?: () => Redactor
}

/** Bytes that are read in one go. A shorter run is stored in one write: whole or not at all. */
const mostAtOnce = 1024 * 1024
/** Bytes of each write of a longer one, about. Whoever reads one entry reads all that were stored with it. */
const mostOfWrite = 64 * 1024

/**
 * Imports a run. The same again changes nothing. Rejects with `invalid-recording`, with the first fault, and with `run-exists` if the
 * store has another run of this id.
 */
export async function importNdjson(
  store: Store,
  source: string | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  options: ImportOptions = {},
): Promise<Imported> {
  const importing = createImport(options)
  try {
    for await (const chunk of typeof source === 'string' ? [source] : source) await importing.feed(chunk)
    return await importing.finish(store)
  } finally {
    await importing.close()
  }
}

export interface Import {
  /** Takes the next bytes; resolves when more may come. Rejects with `invalid-recording`. */
  feed(chunk: string | Uint8Array): Promise<void>
  /** Call it when all bytes are there. Throws `invalid-recording`. */
  end(): void
  finish(store: Store): Promise<Imported>
  /** Call it at the end, whatever came of it. */
  close(): Promise<void>
}

export function createImport({ name = 'The recording', redactor }: ImportOptions = {}): Import {
  const utf8 = new TextEncoder()
  const spool = createSpool()
  const check = checkRecording(name)
  let checked: CheckedRecording | undefined
  const end = () => (checked ??= check.end())
  const read = (fold: ImportFold) => entriesOf(spool.read(), fold, createEntryCleaner(redactor?.()), end().lastSeq)
  return {
    async feed(chunk) {
      const bytes = typeof chunk === 'string' ? utf8.encode(chunk) : chunk
      for (let at = 0; at < bytes.length; at += mostAtOnce) {
        const piece = bytes.subarray(at, at + mostAtOnce)
        check.feed(piece)
        await spool.add(piece)
      }
    },
    end: () => void end(),
    async finish(store) {
      const { id, epoch } = end()
      const known = await store.runs.get(id)
      if (known === undefined) {
        await checkPlace(store.runs, name, end())
        await write(store, read, { id, epoch })
      } else if (!(await isSame(store, known, read))) throw exists(id)
      return { id, isNew: known === undefined, row: known ?? (await store.runs.get(id))! }
    },
    close: () => spool.close(),
  }
}

interface Batch {
  entries: Entry[]
  /** Of the text that they come from. */
  bytes: number
}

/**
 * The entries of bytes that were checked, in batches, each applied to the fold, and the end that a crash has cut off. `foreign`: the `seq` of
 * the last one that was recorded elsewhere.
 */
async function* entriesOf(
  pieces: AsyncIterable<Uint8Array>,
  fold: ImportFold,
  cleaner: EntryCleaner,
  foreign: number,
): AsyncGenerator<Batch, void, void> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const reader = createNdjsonReader()
  const batch = (entries: Entry[], bytes: number): Batch => {
    // Whatever the recording says about it.
    if (entries[0]?.type === 'run-start') entries[0] = { ...entries[0], foreign }
    fold.apply(entries, bytes)
    return { entries, bytes }
  }
  for await (const piece of pieces) {
    yield batch(cleaner.clean(reader.feed(decoder.decode(piece, { stream: true }))), piece.length)
  }
  yield batch([...cleaner.clean([...reader.feed(decoder.decode()), ...reader.end()]), ...cleaner.end()], 0)
  yield batch(fold.missingEnd(), 0)
}

type Read = (fold: ImportFold) => AsyncIterable<Batch>

async function write(store: Store, read: Read, { id, epoch }: Pick<CheckedRecording, 'id' | 'epoch'>): Promise<void> {
  const fold = createImportFold()
  let waiting: Entry[] = []
  let bytes = 0
  let isLong = false
  const append = async (entries: Entry[], view?: () => KeptView | undefined) => {
    if ((await store.log.append(id, epoch, entries, view)) === 'fenced') throw exists(id)
  }
  for await (const batch of read(fold)) {
    for (const entry of batch.entries) waiting.push(entry)
    bytes += batch.bytes
    isLong ||= bytes > mostAtOnce
    if (!isLong) continue
    const size = Math.ceil((waiting.length * mostOfWrite) / bytes)
    let at = 0
    for (; at + size < waiting.length; at += size) await append(waiting.slice(at, at + size))
    // The last ones have the view with them.
    waiting = waiting.slice(at)
    bytes = 0
  }
  await append(waiting, fold.view)
}

/** Whether the stored run has exactly these entries. It may have been recorded here. */
async function isSame(store: Store, row: RunRow, read: Read): Promise<boolean> {
  const stored = store.log.read(row.id)[Symbol.asyncIterator]()
  const fold = createImportFold()
  let batch: Entry[] = []
  let at = 0
  try {
    for await (const { entries } of read(fold)) {
      for (const entry of entries) {
        if (at === batch.length) {
          batch = ((await stored.next()).value as Entry[] | undefined) ?? []
          at = 0
        }
        if (textOf(batch[at++]) !== textOf(entry)) return false
      }
    }
  } finally {
    await stored.return?.()
  }
  return fold.lastSeq === row.lastSeq
}

function textOf(entry: Entry | undefined): string | undefined {
  return JSON.stringify(entry?.type === 'run-start' ? asRecorded(entry) : entry)
}

function exists(id: string): MillraceError {
  const cure = 'Import it into another data folder.'
  return new MillraceError('run-exists', `There is another run ${id}. ${cure}`, { status: 409 })
}

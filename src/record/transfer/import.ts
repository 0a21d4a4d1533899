/**
 * A log of Millrace as a run of a store: its entries as they are, byte for byte, without secrets; its start says that the run is foreign. One whose
 * process crashed gets its end. The text is checked as it comes and kept as bytes; entries are made of it in pieces, so that a long run needs no more memory
 * than its file.
 */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { KeptView, RunRow, Store } from '../../part/log.ts'
import type { Part } from '../../part/part.ts'
import { asRecorded } from '../../part/recording.ts'
import { noUsage } from '../../part/usage.ts'
import type { Redactor } from '../../fold/redact.ts'
import { viewOf } from '../../fold/read-view.ts'
import { foldRun, type FoldedRun } from '../../fold/run-fold.ts'
import { createNdjsonReader } from '../../store/ndjson.ts'
import { createEntryCleaner, type EntryCleaner } from './clean-entries.ts'
import { checkRecording, type CheckedRecording } from './check-recording.ts'

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

/** Bytes that are stored in one write, about: a shorter run is imported whole or not at all. */
const mostAtOnce = 1024 * 1024

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
  for await (const chunk of typeof source === 'string' ? [source] : source) importing.feed(chunk)
  return importing.finish(store)
}

export interface Import {
  /** Takes the next bytes. Throws `invalid-recording`. */
  feed(chunk: string | Uint8Array): void
  /** Call it when all bytes are there. Throws `invalid-recording`. */
  end(): void
  finish(store: Store): Promise<Imported>
}

export function createImport({ name = 'The recording', redactor }: ImportOptions = {}): Import {
  const utf8 = new TextEncoder()
  const pieces: Uint8Array[] = []
  const check = checkRecording(name)
  let checked: CheckedRecording | undefined
  const end = () => (checked ??= check.end())
  const read = (fold: FoldedRun) => entriesOf(pieces, fold, createEntryCleaner(redactor?.()), end().lastSeq)
  return {
    feed(chunk) {
      const bytes = typeof chunk === 'string' ? utf8.encode(chunk) : chunk
      pieces.push(bytes)
      check.feed(bytes)
    },
    end: () => void end(),
    async finish(store) {
      const { id, epoch } = end()
      const known = await store.runs.get(id)
      if (known === undefined) await write(store, read, { id, epoch })
      else if (!(await isSame(store, known, read))) throw exists(id)
      return { id, isNew: known === undefined, row: known ?? (await store.runs.get(id))! }
    },
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
function* entriesOf(
  pieces: readonly Uint8Array[],
  fold: FoldedRun,
  cleaner: EntryCleaner,
  foreign: number,
): Generator<Batch> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const reader = createNdjsonReader()
  let last = 0
  const batch = (entries: Entry[], bytes: number): Batch => {
    // Whatever the recording says about it.
    if (entries[0]?.type === 'run-start') entries[0] = { ...entries[0], foreign }
    for (const entry of entries) fold.apply(entry)
    last = entries.at(-1)?.timestamp ?? last
    return { entries, bytes }
  }
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += mostAtOnce) {
      const part = piece.subarray(at, at + mostAtOnce)
      yield batch(cleaner.clean(reader.feed(decoder.decode(part, { stream: true }))), part.length)
    }
  }
  yield batch([...cleaner.clean([...reader.feed(decoder.decode()), ...reader.end()]), ...cleaner.end()], 0)
  yield batch(missingEnd(fold, last), 0)
}

type Read = (fold: FoldedRun) => Iterable<Batch>

async function write(store: Store, read: Read, { id, epoch }: Pick<CheckedRecording, 'id' | 'epoch'>): Promise<void> {
  const fold = foldRun()
  let waiting: Entry[] = []
  let bytes = 0
  const flush = async (view?: () => KeptView | undefined) => {
    const entries = waiting
    waiting = []
    bytes = 0
    if (entries.length > 0 && (await store.log.append(id, epoch, entries, view)) === 'fenced') throw exists(id)
  }
  for (const batch of read(fold)) {
    if (bytes + batch.bytes > mostAtOnce) await flush()
    for (const entry of batch.entries) waiting.push(entry)
    bytes += batch.bytes
  }
  await flush(() => viewOf(fold))
}

function missingEnd(fold: FoldedRun, timestamp: number): Entry[] {
  if (fold.end !== undefined || fold.open.suspended) return []
  const error = { code: 'interrupted', message: 'The recording ended before the run.' }
  let seq = fold.lastSeq
  const toEntry = (step: string, part: Part) => ({ seq: ++seq, timestamp, step, ...part }) as Entry
  const closing = fold.open.closing({ now: timestamp, outcome: 'unavailable', error })
  return [
    ...closing.map(({ step, part }) => toEntry(step, part)),
    toEntry('', { type: 'run-end', outcome: 'interrupted', usage: fold.usage ?? noUsage, error }),
  ]
}

/** Whether the stored run has exactly these entries. It may have been recorded here. */
async function isSame(store: Store, row: RunRow, read: Read): Promise<boolean> {
  const stored = store.log.read(row.id)[Symbol.asyncIterator]()
  const fold = foldRun()
  let batch: Entry[] = []
  let at = 0
  try {
    for (const { entries } of read(fold)) {
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

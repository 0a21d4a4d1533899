/**
 * A log of Millrace as a run of a store: its entries as they are, byte for byte, without secrets; its start says that the run is foreign. One whose
 * process crashed gets its end. The text is checked as it comes and kept as bytes, in a file if it is long; entries are made of it in pieces.
 */
import type { Entry, EntryOf, RecordedPart } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { KeptView, RunRow, Store } from '../../part/log.ts'
import type { Redactor } from '../../fold/redact.ts'
import { createNdjsonReader } from '../../store/ndjson.ts'
import { checkRecording, type CheckedRecording, type RunReference } from './check-recording.ts'
import {
  checkPlace,
  checkThread,
  isSameEntry,
  ofUser,
  withoutReferences,
  type ImportUser,
  type RunStartEntry,
} from './recording-place.ts'
import { keepFeedback } from './keep-feedback.ts'
import { createSpool } from './spool.ts'
import type { Part } from '../../part/part.ts'
import { addUsage, noUsage, type Usage } from '../../part/usage.ts'
import { createOpenItems, callKey } from '../../fold/open-items.ts'
import { viewOf } from '../../fold/read-view.ts'
import { foldRun, type FoldedRun } from '../../fold/run-fold.ts'

/** The result of an import. */
export interface Imported {
  id: string
  /** False if the store had the same run already. */
  isNew: boolean
  row: RunRow
}

/** Options of {@link importNdjson}. */
export interface ImportOptions {
  /** Its name in errors. Default `The recording`. */
  name?: string
  /** Removes secrets before anything is stored: `runtime.redactor()`. */
  redactor?: () => Redactor
  /**
   * Whom the run belongs to, and its thread with it, whatever the recording says. Null: no one. Undefined: whom the recording says, which only a copy
   * of one's own data may do.
   */
  user?: ImportUser
  /** Removes secrets from notes of feedback: `runtime.redact`. */
  clean?: (text: string) => string
}

/** Bytes that are read in one go. A shorter run is stored in one write: whole or not at all. */
const mostAtOnce = 1024 * 1024
/** Bytes of each write of a longer one, about. A reader of one entry reads the whole write. */
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

export function createImport({ name = 'The recording', redactor, user, clean }: ImportOptions = {}): Import {
  const utf8 = new TextEncoder()
  const spool = createSpool()
  const check = checkRecording(name)
  let checked: CheckedRecording | undefined
  const end = () => (checked ??= check.end())
  const read = (fold: ImportFold, others?: readonly RunReference[]) => {
    const place = (start: RunStartEntry) => withoutReferences(ofUser(start, user), others)
    return entriesOf(spool.read(), fold, createEntryCleaner(redactor?.()), { foreign: end().lastSeq, place })
  }
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
      checkThread(name, end(), user)
      const known = await store.runs.get(id)
      if (known === undefined) {
        const others = await checkPlace(store.runs, name, end(), user)
        await write(store, (fold) => read(fold, others), { id, epoch })
        await keepFeedback(store, id, end().feedback, { user, clean })
      } else if (!(await isSame(store, known, read, user))) throw exists(id)
      return { id, isNew: known === undefined, row: known ?? (await store.runs.get(id))! }
    },
    close: () => spool.close(),
  }
}

interface ImportBatch {
  entries: Entry[]
  /** Of the text that they come from. */
  bytes: number
}

/**
 * The entries of bytes that were checked, in batches, each applied to the fold, and the end that a crash has cut off. `foreign`: the `seq` of
 * the last one that was recorded elsewhere. `place`: whose its start is.
 */
async function* entriesOf(
  pieces: AsyncIterable<Uint8Array>,
  fold: ImportFold,
  cleaner: EntryCleaner,
  { foreign, place }: { foreign: number; place: (start: RunStartEntry) => RunStartEntry },
): AsyncGenerator<ImportBatch, void, void> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const reader = createNdjsonReader()
  const batch = (entries: Entry[], bytes: number): ImportBatch => {
    // Whatever the recording says about it.
    if (entries[0]?.type === 'run-start') entries[0] = { ...place(entries[0]), foreign }
    fold.apply(entries, bytes)
    return { entries, bytes }
  }
  for await (const piece of pieces) {
    yield batch(cleaner.clean(reader.feed(decoder.decode(piece, { stream: true }))), piece.length)
  }
  yield batch([...cleaner.clean([...reader.feed(decoder.decode()), ...reader.end()]), ...cleaner.end()], 0)
  yield batch(fold.missingEnd(), 0)
}

type ReadBatches = (fold: ImportFold) => AsyncIterable<ImportBatch>

async function write(
  store: Store,
  read: ReadBatches,
  { id, epoch }: Pick<CheckedRecording, 'id' | 'epoch'>,
): Promise<void> {
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
async function isSame(store: Store, row: RunRow, read: ReadBatches, user: ImportUser): Promise<boolean> {
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
        if (!isSameEntry(batch[at++], entry, user)) return false
      }
    }
  } finally {
    await stored.return?.()
  }
  return fold.lastSeq === row.lastSeq
}

function exists(id: string): MillraceError {
  const cure = 'Import it into another data folder.'
  return new MillraceError('run-exists', `There is another run ${id}. ${cure}`, { status: 409 })
}

/* What an import must know of the entries that it has read: the end that a crash has cut off, and the view that is kept. */

/** Bytes of a recording whose view is made as it is read. The view of a longer one takes memory: its readers fold the log. */
const mostFolded = 32 * 1024 * 1024

interface ImportFold {
  readonly lastSeq: number
  /** `bytes`: of the text of the entries. */
  apply(entries: readonly Entry[], bytes: number): void
  /** The entries that end the run, if it neither has ended nor waits for an answer. */
  missingEnd(): Entry[]
  view(this: void): KeptView | undefined
}

function createImportFold(): ImportFold {
  const open = createOpenItems()
  let whole: FoldedRun | undefined = foldRun()
  let usage: Usage | undefined
  let bytes = 0
  let last: Entry | undefined

  return {
    get lastSeq() {
      return last?.seq ?? 0
    },
    apply(entries, more) {
      bytes += more
      if (bytes > mostFolded) whole = undefined
      for (const entry of entries) {
        open.apply(entry)
        whole?.apply(entry)
        if (entry.type === 'usage') usage = addUsage(usage, entry.usage)
        last = entry
      }
    },
    missingEnd() {
      if (last === undefined || open.ended || open.suspended) return []
      const { timestamp } = last
      const error = { code: 'interrupted', message: 'The recording ended before the run.' }
      let { seq } = last
      const toEntry = (step: string, part: Part) => ({ seq: ++seq, timestamp, step, ...part }) as Entry
      const closing = open.closing({ now: timestamp, outcome: 'unavailable', error })
      return [
        ...closing.map(({ step, part }) => toEntry(step, part)),
        toEntry('', { type: 'run-end', outcome: 'interrupted', usage: usage ?? noUsage, error }),
      ]
    },
    view: () => whole && viewOf(whole),
  }
}

/**
 * Removes secrets from recorded entries. Each entry stays, with its `seq`: text that was held back, because it might begin a secret,
 * goes into the entry that it comes from, not into another one. So later entries wait until that text is known.
 */
type DeltaEntry = EntryOf<'text-delta' | 'reasoning-delta' | 'tool-input-delta'>

interface EntryCleaner {
  clean(entries: readonly Entry[]): Entry[]
  /** The waiting entries. */
  end(): Entry[]
}

export function createEntryCleaner(redactor: Redactor | undefined): EntryCleaner {
  if (redactor === undefined) return { clean: (entries) => [...entries], end: () => [] }
  let waiting: Entry[] = []
  /** Block → its last delta, if text of it may be held back. */
  const held = new Map<string, DeltaEntry>()

  function cleanOne(entry: Entry): Entry {
    const { seq, timestamp, step, ...rest } = entry
    const part = rest as RecordedPart
    const found = redactor!.redact(step, part)
    const key = keyOf(entry)
    const cleaned = found.at(-1)
    if (cleaned === part && found.length === 1) {
      held.delete(key)
      return entry
    }
    const at = { seq, timestamp, step }
    if (!isDelta(entry)) {
      release(key, found)
      return { ...at, ...cleaned } as Entry
    }
    const delta = { ...at, ...(cleaned ?? { ...part, delta: '' }) } as DeltaEntry
    held.set(key, delta)
    return delta
  }

  /** At the end of a block. */
  function release(key: string, found: readonly RecordedPart[]): void {
    const [rest] = found
    const last = held.get(key)
    held.delete(key)
    if (found.length > 1 && last !== undefined) last.delta += (rest as DeltaEntry).delta
  }

  function take(): Entry[] {
    const ready = waiting
    waiting = []
    return ready
  }

  return {
    clean(entries) {
      for (const entry of entries) waiting.push(cleanOne(entry))
      return held.size === 0 ? take() : []
    },
    end() {
      for (const [key, { step, id, type }] of held) {
        release(
          key,
          redactor!.redact(step, {
            type: type.replace('delta', 'end'),
            id,
          } as RecordedPart),
        )
      }
      return take()
    },
  }
}

function isDelta(entry: Entry): entry is DeltaEntry {
  return entry.type === 'text-delta' || entry.type === 'reasoning-delta' || entry.type === 'tool-input-delta'
}

/** The block of its delta or end. */
function keyOf(entry: Entry): string {
  const [kind] = /^(?:text|reasoning|tool-input)-(?=delta$|end$)/u.exec(entry.type) ?? []
  return kind === undefined ? '' : `${kind}\n${callKey(entry.step, (entry as DeltaEntry).id)}`
}

/**
 * Turns parts into entries (seq, time, redaction) and appends them, one append at a time.
 *
 * `emit` is synchronous and cheap. Parts that are emitted during an append go into the next one, so a burst of a fast model is
 * one transaction. Readers only see what is stored.
 */
import { isBareDelta, isDelta, toRecorded, type Entry, type RecordedPart } from '../part/entry.ts'
import { cutError, MillraceError } from '../part/error.ts'
import { moved } from './moved.ts'
import type { Appended, KeptView, Log } from '../part/log.ts'
import type { Part } from '../part/part.ts'
import type { Redactor } from '../fold/redact.ts'

/** Characters that may wait to be appended before producers must pause. */
const highWater = 1_000_000

export interface Writer {
  emit(step: string, part: Part): void
  /** Undefined if the producer may continue, else a promise that settles when it may. */
  ready(): Promise<void> | undefined
  /** Resolves when everything emitted so far is stored. Rejects if the store fails or another owner has taken over. */
  stored(): Promise<void>
  /** Ignores everything that is emitted later. */
  seal(): void
}

export interface WriterOptions {
  log: Log
  run: string
  epoch: number
  lastSeq: number
  redactor: Redactor | undefined
  now(): number
  /** The run's view, to be kept with an entry at which the run ends or waits. */
  view(): KeptView
  /** Called with every new entry, before it is stored. */
  onEntry(entry: Entry): void
  /** Called after each append. */
  onStored?(): void
  /** Called when the store fails, or refuses because the run is not ours any more (`isMoved`). This writer stores nothing more. */
  onFailure(error: unknown): void
}

const soon = Promise.resolve()

/** A cheap estimate of an entry's characters in the log. */
function weightOf(entry: Entry): number {
  if (isDelta(entry)) return entry.delta.length + 64
  const { data, result, input, raw } = entry as { data?: unknown; result?: unknown; input?: unknown; raw?: unknown }
  const texts = [data, result, input, raw].filter((value) => typeof value === 'string')
  return texts.reduce((sum, { length }) => sum + length, 512)
}

function bounded(part: RecordedPart): RecordedPart {
  return 'error' in part && part.error !== undefined ? { ...part, error: cutError(part.error) } : part
}

export function createWriter({
  log,
  run,
  epoch,
  lastSeq,
  redactor,
  now,
  view,
  onEntry,
  onStored,
  onFailure,
}: WriterOptions): Writer {
  let seq = lastSeq
  let pending: Entry[] = []
  /** The batch of the append under way, once the store has asked for it. */
  let sent: Entry[] | undefined
  let weight = 0
  /** Whether an append is under way or about to begin. */
  let isAppending = false
  /** Whether the batch was sent before. */
  let isResent = false
  /** Made only if somebody waits for the appends to end. */
  let resting: PromiseWithResolvers<void> | undefined
  let sealed = false
  let failure: { error: unknown } | undefined

  function push(step: string, part: RecordedPart): void {
    // The envelope's keys come first in a line, but are set last, in case a part has a `seq` of its own.
    const entry = { seq: 0, timestamp: 0, step, ...bounded(part) } as Entry
    entry.seq = seq + 1
    entry.timestamp = now()
    entry.step = step
    add(entry, weightOf(entry))
  }

  /** The number is used up only if `onEntry` succeeds: after a gap the store would refuse all later entries. */
  function add(entry: Entry, characters: number): void {
    onEntry(entry)
    seq = entry.seq
    pending.push(entry)
    weight += characters
    if (isAppending) return
    isAppending = true
    // Waits for the caller's tick to finish, so that everything it emits is one append.
    void soon.then(append)
  }

  function nextBatch(): Entry[] {
    sent = pending
    pending = []
    weight = 0
    return sent
  }

  function viewToKeep(): KeptView | undefined {
    const last = sent?.at(-1)?.type
    if (last !== 'run-end' && last !== 'suspend') return undefined
    try {
      return view()
    } catch {
      // Who needs it folds the log.
      return undefined
    }
  }

  function append(): void {
    try {
      log.append(run, epoch, isResent && sent !== undefined ? sent : nextBatch, viewToKeep).then(appended, notAppended)
    } catch (error) {
      notAppended(error)
    }
  }

  function appended(how: Appended): void {
    sent = undefined
    isResent = false
    if (how === 'fenced') return fail(moved())
    onStored?.()
    if (pending.length > 0) append()
    else rest()
  }

  function notAppended(error: unknown): void {
    // Perhaps only the acknowledgement was lost. What is sent twice is stored once, so the same batch is sent again.
    if (isResent || !(error instanceof MillraceError) || error.code !== 'store-failed') return fail(error)
    isResent = true
    append()
  }

  function fail(error: unknown): void {
    failure = { error }
    pending = []
    sealed = true
    onFailure(error)
    rest()
  }

  function rest(): void {
    isAppending = false
    resting?.resolve()
    resting = undefined
  }

  const rested = () => (resting ??= Promise.withResolvers()).promise

  return {
    emit(step, part) {
      if (sealed) return
      if (redactor === undefined && isBareDelta(part)) {
        const { type, id, delta } = part
        return add({ seq: seq + 1, timestamp: now(), step, type, id, delta }, delta.length + 64)
      }
      const recorded = toRecorded(part)
      if (redactor === undefined) push(step, recorded)
      else for (const clean of redactor.redact(step, recorded)) push(step, clean)
    },
    ready: () => (isAppending && weight > highWater ? rested() : undefined),
    async stored() {
      while (isAppending) await rested()
      if (failure !== undefined) throw failure.error
    },
    seal() {
      sealed = true
    },
  }
}

/**
 * The one place where parts become entries: seq, time, redaction, and one append at a time.
 *
 * `emit` is synchronous and cheap; what it gathers while an append is under way goes with the next one, so a tick of a
 * fast model is one transaction. Readers see nothing that is not stored.
 */
import { isDelta, toRecorded, type Entry, type RecordedPart } from '../part/entry.ts'
import { cutError } from '../part/error.ts'
import type { Log } from '../part/log.ts'
import type { Part } from '../part/part.ts'
import type { Redactor } from '../part/redact.ts'

/** Characters that may wait for their append before producers are asked to pause. */
const highWater = 1_000_000

export interface Writer {
  emit(step: string, part: Part): void
  /** Undefined when the producer may go on, else a promise of the moment when it may. */
  ready(): Promise<void> | undefined
  /** When all that was emitted so far is stored; rejects when the store refused. */
  stored(): Promise<void>
  /** Whatever comes after this is ignored: the run is over for its steps. */
  seal(): void
}

export interface WriterOptions {
  log: Log
  run: string
  epoch: number
  lastSeq: number
  redactor: Redactor | undefined
  now(): number
  /** Sees every entry as it is made, before it is stored. */
  onEntry(entry: Entry): void
  /** An append is stored. */
  onStored?(): void
  /** The store refused: nothing more will be stored by this writer. */
  onFailure(error: unknown): void
}

/** About as many characters as it will be in the log, as far as that is cheap to tell. */
function weightOf(entry: Entry): number {
  if (isDelta(entry)) return entry.delta.length + 64
  const { data, result, input } = entry as { data?: unknown; result?: unknown; input?: unknown }
  const texts = [data, result, input].filter((value) => typeof value === 'string')
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
  onEntry,
  onStored,
  onFailure,
}: WriterOptions): Writer {
  let seq = lastSeq
  let pending: Entry[] = []
  let weight = 0
  let appending: Promise<void> | undefined
  let sealed = false
  let failure: { error: unknown } | undefined

  function push(step: string, part: RecordedPart): void {
    // The envelope stands first in a line and is set last, and its number is taken only with a good entry: a part that
    // brings a `seq` of its own, or one that cannot be folded, must not leave a gap that the store would refuse all
    // that follows for.
    const entry = { seq: 0, timestamp: 0, step, ...bounded(part) } as Entry
    entry.seq = seq + 1
    entry.timestamp = now()
    entry.step = step
    onEntry(entry)
    seq = entry.seq
    pending.push(entry)
    weight += weightOf(entry)
    appending ??= drain()
  }

  function take(): Entry[] {
    const batch = pending
    pending = []
    weight = 0
    return batch
  }

  async function drain(): Promise<void> {
    // Lets the caller's tick finish, so that what it emits in one go is one append.
    await Promise.resolve()
    try {
      while (pending.length > 0 && failure === undefined) {
        await log.append(run, epoch, take)
        onStored?.()
      }
    } catch (error) {
      failure = { error }
      pending = []
      sealed = true
      onFailure(error)
    } finally {
      appending = undefined
    }
  }

  return {
    emit(step, part) {
      if (sealed) return
      const recorded = toRecorded(part)
      if (redactor === undefined) push(step, recorded)
      else for (const clean of redactor.redact(step, recorded)) push(step, clean)
    },
    ready: () => (weight > highWater ? appending : undefined),
    async stored() {
      while (appending !== undefined) await appending
      if (failure !== undefined) throw failure.error
    },
    seal() {
      sealed = true
    },
  }
}

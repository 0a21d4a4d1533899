/**
 * Turns parts into entries (seq, time, redaction) and appends them, one append at a time.
 *
 * `emit` is synchronous and cheap. Parts that are emitted during an append go into the next one, so a burst of a fast model is one transaction.
 * Readers only see stored entries.
 */
import { isBareDelta, isDelta, toRecorded, type BareDelta, type Entry, type RecordedPart } from '../part/entry.ts'
import { cutError, MillraceError } from '../part/error.ts'
import type { Appended, KeptView, Log } from '../part/log.ts'
import type { Part } from '../part/part.ts'
import type { Redactor } from '../fold/redact.ts'

/** Maximum pending characters before producers must pause. */
const highWater = 1_000_000

export interface Writer {
  emit(step: string, part: Part): void
  /** Undefined if the producer may continue, else a promise that settles when it may. */
  ready(): Promise<void> | undefined
  /** Resolves when everything emitted so far is stored. Rejects if the store fails or another owner has taken over. */
  stored(): Promise<void>
  /** Ignores all later parts. */
  seal(): void
}

export interface WriterOptions {
  log: Log
  run: string
  epoch: number
  lastSeq: number
  redactor: Redactor | undefined
  now(): number
  /** The run's view, to be stored with an entry at which the run ends or is suspended. */
  view(): KeptView | undefined
  /** Called with every new entry, before it is stored. */
  onEntry(entry: Entry): void
  /** Called after each append with the `seq` of its last entry. */
  onStored?(seq: number): void
  /** Called when the store fails, or refuses because another owner has the run (`isMoved`). This writer stores nothing more. */
  onFailure(error: unknown): void
}

const soon = Promise.resolve()

/** A cheap estimate of an entry's characters in the log. */
function weightOf(entry: Entry): number {
  if (isDelta(entry)) return entry.delta.length + 64
  const { data, result, input, raw } = entry as { data?: unknown; result?: unknown; input?: unknown; raw?: unknown }
  return 512 + lengthOf(data) + lengthOf(result) + lengthOf(input) + lengthOf(raw)
}

function lengthOf(value: unknown): number {
  return typeof value === 'string' ? value.length : 0
}

function bounded(part: RecordedPart): RecordedPart {
  return 'error' in part && part.error !== undefined ? { ...part, error: cutError(part.error) } : part
}

export function createWriter(options: WriterOptions): Writer {
  return new LogWriter(options)
}

/** A class with `private` fields, not closures: one for each open stream (decisions/0028). Callbacks are fields, made once. */
class LogWriter implements Writer {
  private readonly options: WriterOptions
  private seq: number
  private pending: Entry[] = []
  /** The batch of the current append, once the store has requested it. */
  private sent: Entry[] | undefined = undefined
  private weight = 0
  /** Whether an append runs or is about to. */
  private isAppending = false
  /** Whether the batch was sent before. */
  private isResent = false
  /** Lazy: created only for a caller that awaits the appends. */
  private resting: PromiseWithResolvers<void> | undefined = undefined
  private sealed = false
  private failure: { error: unknown } | undefined = undefined

  constructor(options: WriterOptions) {
    this.options = options
    this.seq = options.lastSeq
  }

  readonly emit = (step: string, part: Part): void => {
    if (this.sealed) return
    const { redactor } = this.options
    const isBare = isBareDelta(part)
    if (isBare && (redactor === undefined || redactor.keeps(part))) return this.pushDelta(step, part)
    const recorded = isBare ? part : toRecorded(part)
    if (redactor === undefined) return this.push(step, recorded)
    for (const clean of redactor.redact(step, recorded)) {
      if (isBare && clean === recorded) this.pushDelta(step, part)
      else this.push(step, clean)
    }
  }

  private pushDelta(step: string, { type, id, delta }: BareDelta): void {
    const entry = { seq: this.seq + 1, timestamp: this.options.now(), step, type, id, delta }
    this.add(entry, delta.length + 64)
  }

  private push(step: string, part: RecordedPart): void {
    // The envelope's keys come first in a line, but are set last, in case a part has a `seq` of its own.
    const entry = { seq: 0, timestamp: 0, step, ...bounded(part) } as Entry
    entry.seq = this.seq + 1
    entry.timestamp = this.options.now()
    entry.step = step
    this.add(entry, weightOf(entry))
  }

  /** The number is used up only if `onEntry` succeeds: after a gap the store would refuse all later entries. */
  private add(entry: Entry, characters: number): void {
    this.options.onEntry(entry)
    this.seq = entry.seq
    this.pending.push(entry)
    this.weight += characters
    if (this.isAppending) return
    this.isAppending = true
    // Waits for the caller's tick to finish, so that everything it emits is one append.
    void soon.then(this.append)
  }

  private readonly nextBatch = (): Entry[] => {
    const batch = this.pending
    this.sent = batch
    this.pending = []
    this.weight = 0
    return batch
  }

  private readonly viewToKeep = (): KeptView | undefined => {
    const last = this.sent?.at(-1)?.type
    if (last !== 'run-end' && last !== 'suspend') return undefined
    try {
      return this.options.view()
    } catch {
      // Readers fold the log.
      return undefined
    }
  }

  private readonly append = (): void => {
    const { log, run, epoch } = this.options
    const entries = this.isResent && this.sent !== undefined ? this.sent : this.nextBatch
    try {
      log.append(run, epoch, entries, this.viewToKeep).then(this.appended, this.notAppended)
    } catch (error) {
      this.notAppended(error)
    }
  }

  private readonly appended = (how: Appended): void => {
    const last = this.sent?.at(-1)
    this.sent = undefined
    this.isResent = false
    if (how === 'fenced') return this.fail(ownershipLost())
    this.options.onStored?.(last?.seq ?? 0)
    if (this.pending.length > 0) this.append()
    else this.rest()
  }

  private readonly notAppended = (error: unknown): void => {
    // Perhaps only the acknowledgement was lost. A batch that is sent twice is stored once, so it is sent again.
    const isFinal = this.isResent || !(error instanceof MillraceError) || error.code !== 'store-failed'
    if (isFinal) return this.fail(error)
    this.isResent = true
    this.append()
  }

  private fail(error: unknown): void {
    this.failure = { error }
    this.pending = []
    this.sealed = true
    this.options.onFailure(error)
    this.rest()
  }

  private rest(): void {
    this.isAppending = false
    this.resting?.resolve()
    this.resting = undefined
  }

  private rested(): Promise<void> {
    this.resting ??= Promise.withResolvers()
    return this.resting.promise
  }

  readonly ready = (): Promise<void> | undefined =>
    this.isAppending && this.weight > highWater ? this.rested() : undefined

  readonly stored = async (): Promise<void> => {
    while (this.isAppending) await this.rested()
    if (this.failure !== undefined) throw this.failure.error
  }

  seal(): void {
    this.sealed = true
  }
}

/** The error of a run that another process continues or has ended. It is not a failure: nothing is reported or recorded. */
function ownershipLost(): MillraceError {
  return new MillraceError('moved', 'Another process has taken over the run.')
}

export function isMoved(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'moved'
}

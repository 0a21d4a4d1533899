/**
 * A client's live cursor into a run's log. `acceptance.ts` peeks at the first entries to decide the response; peeked batches
 * are kept and returned again by `next`, so they are read only once.
 */
import { type Entry, mergeDeltas } from '../part/entry.ts'
import type { Log, LogCursor } from '../part/log.ts'
import { createSuperseded } from '../fold/superseded.ts'

type ReadBatch = IteratorResult<Entry[], undefined>

export interface RunReader {
  /** Peeks at the next batch. */
  peek(): Promise<ReadBatch>
  /** The next batch from the start, including peeked ones. Ends peeking. */
  next(): Promise<ReadBatch>
  /** The same without a promise per batch: calls one of the two, later and once. */
  take(onBatch: (batch: ReadBatch) => void, onError: (error: unknown) => void): void
  /** Ends pending reads. */
  close(): void
}

/**
 * The maximum number of entries kept while peeking. Beyond it none is kept, and `next` reads the log from the start. The last batch is kept
 * whatever its size: it may contain a whole short answer.
 */
const most = 256

/** `from`: peeking may begin here, if there are too many entries before it to keep. */
export function createRunReader(log: Log, run: string, after = 0, from = 0): RunReader {
  return new LogRunReader(log, run, after, from)
}

class LogRunReader implements RunReader {
  readonly #log: Log
  readonly #run: string
  readonly #after: number
  readonly #leave = new AbortController()
  #cursor: LogCursor<Entry[]>
  #kept: Promise<ReadBatch>[] | undefined
  #count = 0

  constructor(log: Log, run: string, after: number, from: number) {
    this.#log = log
    this.#run = run
    this.#after = after
    const isLong = from - after > most
    this.#cursor = this.#open(isLong ? from - 1 : after)
    this.#kept = isLong ? undefined : []
  }

  #open(after: number): LogCursor<Entry[]> {
    return this.#log.read(this.#run, { after, signal: this.#leave.signal })[Symbol.asyncIterator]()
  }

  async peek(): Promise<ReadBatch> {
    if (this.#count > most) this.#kept = undefined
    const batch = this.#cursor.next()
    this.#kept?.push(batch)
    const { done, value } = await batch
    if (!done) this.#count += value.length
    return batch
  }

  next(): Promise<ReadBatch> {
    return this.#peeked() ?? this.#cursor.next()
  }

  take(onBatch: (batch: ReadBatch) => void, onError: (error: unknown) => void): void {
    const peeked = this.#peeked()
    if (peeked === undefined && this.#cursor.take !== undefined) this.#cursor.take(onBatch, onError)
    else (peeked ?? this.#cursor.next()).then(onBatch, onError)
  }

  /** Ends peeking, and returns the next batch that it has kept. */
  #peeked(): Promise<ReadBatch> | undefined {
    if (this.#kept === undefined) {
      void this.#cursor.return?.()
      this.#cursor = this.#open(this.#after)
      this.#kept = []
    }
    this.#count = Number.NEGATIVE_INFINITY
    return this.#kept.shift()
  }

  close(): void {
    this.#leave.abort('left')
  }
}

/** The replay state of a log, which a later client needs before it reads: collected in one pass without the run's text. */
export interface ReplayState {
  /** The `seq` of the last `resume`, or 0. */
  resumedAt: number
  /** The `seq` of the last message whose request reads on from there, if it is later; or 0. */
  turnAt: number
  /** The answer is complete. */
  isAnswered: boolean
  /** For a replay from the start: merges deltas and drops attempts that a crash superseded. */
  filter(entries: Entry[]): Entry[]
}

const types = ['step-start', 'step-reset', 'resume', 'message', 'answer-end', 'run-end'] as const

/** `whole`: deltas stay as they are, for protocols that number them. */
export async function readReplayState(log: Log, runId: string, { whole = false } = {}): Promise<ReplayState> {
  const superseded = createSuperseded()
  const passed = whole ? same : merged
  const replayState: ReplayState = { resumedAt: 0, turnAt: 0, isAnswered: false, filter: passed }
  for await (const batch of log.read(runId, { types })) {
    for (const entry of batch) {
      superseded.note(entry)
      if (entry.type === 'resume') replayState.resumedAt = entry.seq
      else if (entry.type === 'message' && entry.turn === true && entry.outcome === undefined)
        replayState.turnAt = entry.seq
      else if (entry.type === 'answer-end' || entry.type === 'run-end') replayState.isAnswered = true
    }
  }
  if (superseded.isEmpty) return replayState
  superseded.noted()
  replayState.filter = (entries) => passed(entries.filter((entry) => !superseded.has(entry)))
  return replayState
}

function same(entries: Entry[]): Entry[] {
  return entries
}

/** The filter of nearly all runs, shared: a reader that has come keeps nothing of what was read for it, however long the run is. */
function merged(entries: Entry[]): Entry[] {
  // A reader that keeps up gets them one at a time.
  return entries.length === 1 ? entries : mergeDeltas(entries)
}

/**
 * A cursor into the log of one run that a live connection follows. It reads only on demand, so it holds at most one batch. Its first entries are
 * sent at once; entries of the next 50 ms are sent together, with their deltas merged.
 */
import { mergeDeltas, type Entry } from '../../part/entry.ts'
import { createEntryLines } from '../../part/entry-lines.ts'
import { MillraceError } from '../../part/error.ts'
import type { Log } from '../../part/log.ts'

export interface RunCursorOptions {
  log: Log
  run: string
  after: number
  /** The last entry when the connection was opened: stored entries are sent without a pause. */
  lastSeq: number
  /** Called when `take` has frames. */
  onReady(): void
  /** The run was deleted, or its deltas were merged around the cursor. */
  onGone(reason: 'deleted' | 'compacted'): void
  /** The store cannot be read or was closed. */
  onEnd(error?: unknown): void
}

export interface RunCursor {
  /** Continues reading, now or when its window has passed. */
  ask(): void
  /** The frames that were read; empty if there are none. */
  take(): string
  close(): void
}

/** ms */
const pace = 50
/** A batch of this many entries or characters shows that the cursor lags. */
const large = { entries: 128, chars: 64 * 1024 }

export function createRunCursor(options: RunCursorOptions): RunCursor {
  const { log, run, lastSeq, onReady, onGone, onEnd } = options
  const leave = new AbortController()
  const batches = log.read(run, { after: options.after, signal: leave.signal })[Symbol.asyncIterator]()
  const toLine = createEntryLines()
  const head = `event: entry\nid: ${encodeURIComponent(run)}~`
  const data = `\ndata: {"run":${JSON.stringify(run)},"entry":`
  let batch: Entry[] | undefined
  let isReading = false
  let isDone = false
  let nextAt = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  function ask(): void {
    if (isDone || isReading || batch !== undefined || timer !== undefined) return
    const wait = nextAt - performance.now()
    if (wait > 0) {
      timer = setTimeout(() => {
        timer = undefined
        read()
      }, wait)
    } else read()
  }

  function read(): void {
    isReading = true
    batches.next().then(onBatch, onFailure)
  }

  function onBatch({ done, value }: IteratorResult<Entry[], unknown>): void {
    isReading = false
    if (isDone) return
    if (done === true) {
      isDone = true
      // A log ends with `run-end`, after which nothing is read: so the store was closed.
      onEnd()
      return
    }
    batch = value
    if (value.at(-1)?.type === 'run-end') isDone = true
    onReady()
  }

  function onFailure(error: unknown): void {
    isReading = false
    if (isDone) return
    isDone = true
    const code = error instanceof MillraceError ? error.code : undefined
    if (code === 'unknown-run') onGone('deleted')
    else if (code === 'compacted') onGone('compacted')
    else onEnd(error)
  }

  return {
    ask,
    take() {
      if (batch === undefined) return ''
      let text = ''
      for (const entry of mergeDeltas(batch, { marked: true })) {
        text += head + entry.seq + data + toLine(entry) + '}\n\n'
      }
      const isBehind = batch.length >= large.entries || text.length >= large.chars || batch.at(-1)!.seq < lastSeq
      nextAt = isBehind ? 0 : performance.now() + pace
      batch = undefined
      return text
    },
    close() {
      isDone = true
      clearTimeout(timer)
      leave.abort()
    },
  }
}

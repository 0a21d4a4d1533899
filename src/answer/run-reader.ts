/**
 * A client's live cursor into a run's log. `acceptance.ts` peeks at the first entries to decide the response; peeked batches
 * are kept and returned again by `next`, so they are read only once.
 */
import type { Entry } from '../part/entry.ts'
import type { Log } from '../part/log.ts'

type Batch = IteratorResult<Entry[], unknown>

export interface RunReader {
  /** Peeks at the next batch. */
  peek(): Promise<Batch>
  /** The next batch from the start, including peeked ones. Ends peeking. */
  next(): Promise<Batch>
  /** Pending reads end. */
  close(): void
}

/**
 * The maximum number of entries kept while peeking. Beyond it nothing is kept, and `next` reads the log from the start. The
 * last batch is kept whatever its size: it may contain a whole short answer.
 */
const most = 256

/** `from`: peeking may begin here, if the entries before it are more than would be kept. */
export function createRunReader(log: Log, run: string, after = 0, from = 0): RunReader {
  const leave = new AbortController()
  const open = (start = after) => log.read(run, { after: start, signal: leave.signal })[Symbol.asyncIterator]()
  const isLong = from - after > most
  let cursor = isLong ? open(from - 1) : open()
  let kept: Promise<Batch>[] | undefined = isLong ? undefined : []
  let count = 0

  return {
    async peek() {
      if (count > most) kept = undefined
      const batch = cursor.next()
      kept?.push(batch)
      const { done, value } = await batch
      if (!done) count += value.length
      return batch
    },
    next() {
      if (kept === undefined) {
        void cursor.return?.()
        cursor = open()
        kept = []
      }
      count = Number.NEGATIVE_INFINITY
      return kept.shift() ?? cursor.next()
    },
    close: () => leave.abort('left'),
  }
}

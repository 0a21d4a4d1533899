/**
 * One client's cursor into a run's log, live. Whether an answer may begin is read off the entries that it begins with
 * (`acceptance.ts`): they are looked at ahead and given again, instead of being read twice.
 */
import type { Entry } from '../part/entry.ts'
import type { Log } from '../part/log.ts'

type Batch = IteratorResult<Entry[], unknown>

export interface RunReader {
  /** The next batch that nobody has looked at. */
  look(): Promise<Batch>
  /** The batches from the beginning, those that were looked at among them. Nobody looks ahead any more. */
  next(): Promise<Batch>
  /** Whoever waits for a batch gets the end. */
  close(): void
}

/**
 * Once so many entries have been looked at in vain, no more are kept, and `next` reads the log from the beginning. The batch
 * that an answer begins with is kept whatever its size: all of a short answer may be in it.
 */
const most = 256

export function createRunReader(log: Log, run: string, after = 0): RunReader {
  const leave = new AbortController()
  const open = () => log.read(run, after, leave.signal)[Symbol.asyncIterator]()
  let cursor = open()
  let kept: Promise<Batch>[] | undefined = []
  let count = 0

  return {
    async look() {
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

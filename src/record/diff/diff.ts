/**
 * Compares two recordings. Both logs are read side by side, once: memory holds one batch of each, and what the runs come to.
 * Ids, times and durations of two runs always differ, so they are not compared: docs/replay.md says what counts as equal.
 */
import type { Entry } from '../../part/entry.ts'
import type { Recording } from '../../part/recording.ts'
import { createDigest, type Digest, type RunDigest } from './digest.ts'
import { createComparable, type Comparable } from './comparable.ts'

/** The first place at which two runs differ. An absent entry: this run has ended there. */
export interface Divergence {
  a?: Entry
  b?: Entry
  /** The fields that differ. */
  fields: string[]
}

/** The comparison of two runs. */
export interface RunDiff {
  same: boolean
  divergence?: Divergence
  a: RunDigest
  b: RunDigest
}

/** Compares two recordings, from a log (`recordedRun`) or from a file (`recordedEntries`). */
export async function diffRuns(a: Recording, b: Recording): Promise<RunDiff> {
  const [left, right] = [open(a), open(b)]
  let divergence: Divergence | undefined
  try {
    for (;;) {
      const [x, y] = [await left.next(), await right.next()]
      if (x === undefined && y === undefined) break
      divergence ??= compare(left, right, x, y)
    }
  } finally {
    await Promise.all([left.close(), right.close()])
  }
  return {
    same: divergence === undefined,
    ...(divergence && { divergence }),
    a: left.digest.read(),
    b: right.digest.read(),
  }
}

interface Side {
  digest: Digest
  comparable: (entry: Entry) => Comparable
  next(): Promise<Entry | undefined>
  close(): Promise<void>
}

function open(recording: Recording): Side {
  const batches = recording.read()[Symbol.asyncIterator]()
  const digest = createDigest(recording.name)
  let batch: Entry[] = []
  let at = 0
  return {
    digest,
    comparable: createComparable(),
    async next() {
      while (at === batch.length) {
        const { done, value } = await batches.next()
        if (done) return undefined
        batch = value
        at = 0
      }
      const entry = batch[at++]!
      digest.apply(entry)
      return entry
    },
    close: async () => void (await batches.return?.()),
  }
}

function compare(left: Side, right: Side, a: Entry | undefined, b: Entry | undefined): Divergence | undefined {
  if (a === undefined || b === undefined) return { ...(a && { a }), ...(b && { b }), fields: [] }
  const [x, y] = [left.comparable(a), right.comparable(b)]
  const fields = [...new Set([...x.keys(), ...y.keys()])].filter((key) => x.get(key) !== y.get(key))
  return fields.length === 0 ? undefined : { a, b, fields }
}

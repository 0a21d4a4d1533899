/** A window of a run's log: by `seq`, step and number, forwards or backwards, its deltas merged and its texts shortened on demand. */
import { createCompaction } from '../../fold/compaction.ts'
import { isDelta, type Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { Log, ReadOptions } from '../../part/log.ts'

export type LogWindow = Pick<ReadOptions, 'after' | 'before' | 'limit' | 'step' | 'types'>

/**
 * Reads a window in batches. With `before` and `limit`, but without `after`, it has the last entries before that one. A cursor inside
 * merged deltas gets them whole.
 */
export async function* readWindow(log: Log, run: string, window: LogWindow): AsyncGenerator<Entry[], void, void> {
  const { after, before, limit, ...choice } = window
  if (after === undefined && before !== undefined && limit !== undefined) {
    yield await readBackwards(log, run, { ...choice, before, limit })
    return
  }
  try {
    yield* log.read(run, window)
  } catch (error) {
    // Thrown before the first batch, if at all.
    if (!isCompacted(error)) throw error
    yield* readThrough(log, run, window)
  }
}

async function readBackwards(
  log: Log,
  run: string,
  { before, limit, ...choice }: LogWindow & { before: number; limit: number },
): Promise<Entry[]> {
  let found: Entry[] = []
  let end = before
  // Without a step, without types and without gaps the first round finds all.
  for (let size = limit; end > 1 && found.length < limit; size *= 2) {
    const after = Math.max(0, end - 1 - size)
    const page: Entry[] = []
    try {
      for await (const batch of log.read(run, { ...choice, after, before: end })) page.push(...batch)
    } catch (error) {
      if (!isCompacted(error)) throw error
      found = []
      for await (const batch of log.read(run, { ...choice, before })) found = [...found, ...batch].slice(-limit)
      return found
    }
    found = [...page, ...found]
    end = after + 1
  }
  return found.slice(-limit)
}

/** Reads from the start of a log what comes after a cursor inside merged deltas. A compacted log is short. */
async function* readThrough(log: Log, run: string, { after = 0, limit = Infinity, ...rest }: LogWindow) {
  let left = limit
  for await (const batch of log.read(run, rest)) {
    const later = batch.filter(({ seq }) => seq > after).slice(0, left)
    left -= later.length
    if (later.length > 0) yield later
    if (left === 0) return
  }
}

function isCompacted(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'compacted'
}

/** Deltas in a row that are merged at once. */
const mostMerged = 4096

/** Merges deltas like compaction: see `createCompaction`. The result does not depend on the batches. */
export async function* mergeBatches(batches: AsyncIterable<Entry[]>): AsyncGenerator<Entry[], void, void> {
  const merge = createCompaction()
  let held: Entry[] = []
  for await (const batch of batches) {
    const merged: Entry[] = []
    for (const entry of batch) {
      held.push(entry)
      if (isDelta(entry) && held.length < mostMerged) continue
      merged.push(...merge(held))
      held = []
    }
    if (merged.length > 0) yield merged
  }
  if (held.length > 0) yield merge(held)
}

/** What names an entry's step, block or call is not shortened. */
const kept = /^(?:type|step|id|.*Id)$/u

/** Shortens every text in an entry to at most so many characters. The last one of a shortened text is `…`. */
export function cutEntry(entry: Entry, chars: number): Entry {
  const fields = Object.entries(entry).map(([key, value]) => [key, kept.test(key) ? value : cutValue(value, chars)])
  return Object.fromEntries(fields) as Entry
}

function cutValue(value: unknown, chars: number): unknown {
  if (typeof value === 'string') return cutText(value, chars)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((each) => cutValue(each, chars))
  // Own names like `__proto__` stay what they are.
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, cutValue(each, chars)]))
}

function cutText(text: string, chars: number): string {
  if (text.length <= chars) return text
  const last = text.charCodeAt(chars - 2)
  // Not between the halves of a character.
  const end = last >= 0xd800 && last < 0xdc00 ? chars - 2 : chars - 1
  return `${text.slice(0, end)}…`
}

import type { Entry } from '../part/entry.ts'
import { leavable } from '../async/leavable.ts'

/** Yields the entries of the batches one by one. A reader that leaves while it waits closes the log's cursor at once. */
export function flatten(batches: AsyncIterable<Entry[]>): AsyncGenerator<Entry, void, void> {
  return leavable(async function* (left) {
    const cursor = batches[Symbol.asyncIterator]()
    left.addEventListener('abort', () => void cursor.return?.().catch(() => undefined))
    for await (const batch of { [Symbol.asyncIterator]: () => cursor }) for (const entry of batch) yield entry
  })
}

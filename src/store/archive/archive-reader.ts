/**
 * Reads archived runs page by page, for readers that pass their position. A reader that continues where a page ended gets the next one from the
 * same pass over the run, if it comes soon.
 */
import type { Entry } from '../../part/entry.ts'
import { indexAfter } from '../live-tail-cache.ts'
import type { Archive } from './archive.ts'

/** Maximum number of passes that wait for their readers, and their timeout in ms. */
const mostPasses = 32
const waits = 10_000

interface Pass {
  batches: AsyncIterator<Entry[]>
  timer: ReturnType<typeof setTimeout>
}

export interface ArchiveReader {
  /** Entries after this one, in the reader's own array; empty at the end. */
  page(run: string, place: string, after: number): Promise<Entry[]>
  close(): void
}

export function createArchiveReader(archive: Archive): ArchiveReader {
  const passes = new Map<string, Pass>()

  function end(key: string): void {
    const pass = passes.get(key)
    if (pass === undefined) return
    clearTimeout(pass.timer)
    passes.delete(key)
    void pass.batches.return?.()
  }

  function take(key: string): AsyncIterator<Entry[]> | undefined {
    const pass = passes.get(key)
    if (pass === undefined) return undefined
    clearTimeout(pass.timer)
    passes.delete(key)
    return pass.batches
  }

  function keep(key: string, batches: AsyncIterator<Entry[]>): void {
    // Another reader of the run is at the same position.
    end(key)
    if (passes.size >= mostPasses) end(passes.keys().next().value!)
    const timer = setTimeout(() => end(key), waits)
    timer.unref()
    passes.set(key, { batches, timer })
  }

  return {
    async page(run, place, after) {
      const batches = take(`${after} ${run}`) ?? archive.read(run, place)[Symbol.asyncIterator]()
      for (;;) {
        const next = await batches.next()
        if (next.done === true) return []
        const entries = next.value.slice(indexAfter(next.value, after))
        if (entries.length === 0) continue
        keep(`${entries.at(-1)!.seq} ${run}`, batches)
        return entries
      }
    },
    close() {
      for (const key of passes.keys()) end(key)
    },
  }
}

/** Joins the many deltas of a block into one entry, for reading. */
import { isDelta, mergeDeltas, type Entry } from '../part/entry.ts'

export interface DeltaMerger {
  apply(entry: Entry): void
  /** Emits what is buffered. Call it at the end. */
  flush(): void
}

/** ms after which the buffered part of an unfinished block is emitted. */
const pace = 500
/** Maximum number of buffered entries. */
const most = 1000

/** `isLive`: the run is still going, so nothing is buffered for long. */
export function createDeltaMerger(emit: (entry: Entry) => void, isLive: boolean): DeltaMerger {
  /** By block, because the deltas of parallel branches are interleaved. */
  const held = new Map<string, Entry[]>()
  let count = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const blocks = [...held.values()]
    held.clear()
    count = 0
    for (const block of blocks) mergeDeltas(block).forEach(emit)
  }

  return {
    flush,
    apply(entry) {
      if (!isDelta(entry)) {
        flush()
        emit(entry)
        return
      }
      const key = `${entry.type} ${entry.step} ${entry.id}`
      const block = held.get(key)
      if (block === undefined) held.set(key, [entry])
      else block.push(entry)
      if (++count >= most) flush()
      else if (isLive) timer ??= setTimeout(flush, pace)
    },
  }
}

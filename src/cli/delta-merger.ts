/** Joins the deltas of a block, which come by the hundred, into one entry for the eye. */
import { isDelta, mergeDeltas, type Entry } from '../part/entry.ts'

export interface DeltaMerger {
  apply(entry: Entry): void
  /** Emits what is held; to be called at the end. */
  flush(): void
}

/** ms after which a block that is still being written is shown as far as it is. */
const pace = 500
/** A block is held no longer than this many entries. */
const most = 1000

/** `isLive`: more may come at any time, so nothing is held for long. */
export function createDeltaMerger(emit: (entry: Entry) => void, isLive: boolean): DeltaMerger {
  /** By block, because branches that run at once speak in turns. */
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

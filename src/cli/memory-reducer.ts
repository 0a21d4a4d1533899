/**
 * Keeps the optimized code of a server that rests. Some 10 to 100 s after its last full collection V8 collects an idle heap once more
 * (the "memory reducer"), by default so that it also drops the hidden classes of which no object is alive. Between two requests that is
 * most of what a request is made of. All optimized functions that depend on them are thrown away (500 in a server that had answered
 * 2,500 requests), and the requests after the rest cost a fifth to a third more CPU, hundreds of them.
 *
 * Without that, the collection at rest still happens, but its pages stay in a pool for new objects instead of going back to the
 * system: some 50 MB after single requests, 95 MB after 200 streams at full speed. After a higher load, or with less memory, they are
 * given back, at the price of the code.
 *
 * V8 reads the flag when such a collection begins.
 */
import { totalmem } from 'node:os'
import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'

/** Bytes that may stay in the pool. */
const enough = 128 * 2 ** 20
/** Share of the memory that they may take. */
const mostShare = 1 / 16

type Given = Pick<NodeJS.Process, 'execArgv' | 'env' | 'constrainedMemory'>

/** Only for a process of our own. A flag set by the user is kept. */
export function keepOptimizedCode({ execArgv, env, constrainedMemory }: Given = process): void {
  if ([...execArgv, env['NODE_OPTIONS'] ?? ''].some((given) => /memory[-_]reducer[-_]favors/u.test(given))) return
  const mayReduce = createPolicy(Math.min(totalmem(), constrainedMemory() || Infinity))
  let reduces: boolean | undefined
  const look = (entries: readonly PerformanceEntry[]) => {
    const wanted = mayReduce(getHeapStatistics().total_heap_size, entries.some(isOfReducer))
    if (wanted !== reduces) setFlagsFromString(`--${wanted ? '' : 'no-'}memory-reducer-favors-memory`)
    reduces = wanted
  }
  new PerformanceObserver((list) => look(list.getEntries())).observe({ entryTypes: ['gc'] })
  look([])
}

/**
 * `memory`: bytes that the process may use. Call what it returns after collections, with the size of the heap in bytes, without the pool, and whether the memory reducer has
 * collected. It tells whether the next time it may give memory back.
 */
export function createPolicy(memory: number): (size: number, collected: boolean) => boolean {
  const most = Math.min(enough, memory * mostShare)
  let peak = 0
  let may = false
  return (size, collected) => {
    // What it gave back is no longer in the pool.
    if (collected && may) peak = 0
    peak = Math.max(peak, size)
    may = peak - size > most
    return may
  }
}

function isOfReducer({ detail }: PerformanceEntry & { detail?: { flags?: number } }): boolean {
  return ((detail?.flags ?? 0) & constants.NODE_PERFORMANCE_GC_FLAGS_ALL_EXTERNAL_MEMORY) !== 0
}

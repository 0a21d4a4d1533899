/**
 * Keeps the optimized code of a server that rests. 8 to 100 s after its last full collection V8 collects an idle heap once more (the
 * "memory reducer"), by default so that it also drops the hidden classes of which no object is alive. Between two requests that is
 * most of what a request is made of. All optimized functions that depend on them are thrown away (500 in a server that had answered
 * 2,500 requests), and hundreds of requests after the rest cost about a third more CPU.
 *
 * Without that, the collection at rest still happens, but its pages stay in a pool for new objects instead of going back to the
 * system: some 50 MB after single requests, 95 MB after 200 streams at full speed. After a higher load, or with less memory, they are
 * given back, at the price of the code.
 *
 * V8 reads the flag when such a collection begins.
 */
import { constants } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { memoryOf, steerFlag, type Collection, type Given } from './v8-flag.ts'

/** Bytes that may stay in the pool. */
const enough = 128 * 2 ** 20
/** Share of the memory that they may take. */
const mostShare = 1 / 16

/** Only for a process of our own. A flag set by the user is kept. */
export function keepOptimizedCode(given: Given = process): void {
  const mayReduce = createPolicy(memoryOf(given))
  steerFlag(given, {
    precedence: /memory[-_]reducer[-_]favors/u,
    flag: (on) => `--${on ? '' : 'no-'}memory-reducer-favors-memory`,
    isOn: (collections) => mayReduce(getHeapStatistics().total_heap_size, collections.some(isOfReducer)),
  })
}

/**
 * `memory`: bytes that the process may use. Call what it returns after collections, with the size of the heap in bytes, without the
 * pool, and whether the memory reducer has collected. It tells whether the next time it may give memory back.
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

function isOfReducer({ detail }: Collection): boolean {
  return ((detail?.flags ?? 0) & constants.NODE_PERFORMANCE_GC_FLAGS_ALL_EXTERNAL_MEMORY) !== 0
}

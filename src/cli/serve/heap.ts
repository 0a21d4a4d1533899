/** The heap of a server: sets V8 flags by the garbage collections so far. V8 reads some flags again each time it uses them. */
import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString, getHeapStatistics } from 'node:v8'
import { totalmem } from 'node:os'

type Given = Pick<NodeJS.Process, 'execArgv' | 'env' | 'constrainedMemory'>

/** `detail`: one kind and several flags of `NODE_PERFORMANCE_GC_…`. */
type Collection = PerformanceEntry & { detail?: { kind?: number; flags?: number } }

interface SteeredFlag {
  /** A flag of the user that takes precedence. */
  precedence: RegExp
  flag(on: boolean): string
  /** Called at once, and after the turn of the event loop in which there were collections. */
  isOn(collections: readonly Collection[]): boolean
}

/** Only for a process of our own: V8 has one set of flags for all that runs in it. */
function steerFlag({ execArgv, env }: Given, { precedence, flag, isOn }: SteeredFlag): void {
  if ([...execArgv, env['NODE_OPTIONS'] ?? ''].some((given) => precedence.test(given))) return
  let was: boolean | undefined
  const update = (collections: readonly Collection[]) => {
    const on = isOn(collections)
    if (on !== was) setFlagsFromString(flag(on))
    was = on
  }
  new PerformanceObserver((list) => update(list.getEntries())).observe({ entryTypes: ['gc'] })
  update([])
}

/** Bytes that the process may use. */
function memoryOf({ constrainedMemory }: Given): number {
  return Math.min(totalmem(), constrainedMemory() || Infinity)
}

const MB = 2 ** 20
/** Bytes. The space doubles: after this it is about 16 MB. */
const usualSize = 12 * MB
const maxSize = 96 * MB
/** Share of the memory that the room may take before it doubles for the last time. */
const maxShare = 1 / 24
/** Share of the time that collections of the young generation may take. */
const busyShare = 0.04
/** Seconds in a row with more, before the room doubles. */
const busySeconds = 5
/** How much longer a collection may take in twice the room, for the room to double again. */
const usefulRatio = 1.5

/**
 * Bounds V8's young generation. With many open streams Node lets it grow to 128 MB at once: with 200 streams that is more than all
 * their data. Half of 16 MB has room for a thousand deltas (half of 8 MB costs a fifth more CPU).
 *
 * The cost of a collection depends on the objects that are still alive (each stream keeps those of its last delta), not on the room. With
 * a thousand streams, or some hundred at full speed, that becomes a tenth of the time. While collections take much of the time, the
 * room may therefore double, up to 128 MB or about a twelfth of the memory. Where more room does not help, because new objects stay alive
 * (streams that begin), each collection takes longer then, and the room does not double again.
 *
 * V8 reads its limits at startup, but reads the growth factor each time it is about to grow; with a factor of 1 it does not. The size is
 * checked after the turn of the event loop in which there was a collection: it may have doubled more than once by then. V8 also shrinks
 * the space when the process is idle, and must then be allowed to grow again.
 *
 * Only for a process of our own. A size set by the user is kept.
 */
export function boundYoungGeneration(given: Given = process): void {
  const mayGrow = createBound(memoryOf(given))
  steerFlag(given, {
    precedence: /semi[-_]space/u,
    flag: (on) => `--semi-space-growth-factor=${on ? 2 : 1}`,
    isOn: (collections) => mayGrow(performance.now(), youngSize(), timesOfTheYoung(collections)),
  })
}

/**
 * `memory`: bytes that the process may use. Call what it returns after each collection, with the time in ms, the size in bytes and what
 * the collections of the young generation since the last call took, in ms.
 */
export function createBound(memory: number): (now: number, young: number, times: readonly number[]) => boolean {
  const limit = Math.max(usualSize, Math.min(maxSize, memory * maxShare))
  let size = 0
  /** ms that a collection took before the room last doubled. */
  let before = Infinity
  let seconds = 0
  let count = 0
  let spent = 0
  const current = { count: 0, spent: 0 }
  let since: number | undefined

  function restart(): void {
    seconds = count = spent = 0
  }

  return (now, young, times) => {
    if (young > size * 1.5 || young < size / 1.5) {
      if (young < size) before = Infinity
      else if (seconds >= busySeconds) before = spent / count
      size = young
      restart()
    }
    for (const ms of times) current.spent += ms
    current.count += times.length
    const took = now - (since ??= now)
    if (took >= 1000) {
      // A mean of the last seconds: the number of live objects changes with the load.
      count = count * 0.8 + current.count
      spent = spent * 0.8 + current.spent
      if (current.spent > busyShare * took) seconds++
      else {
        restart()
        before = Infinity
      }
      current.count = current.spent = 0
      since = now
    }
    return young < (seconds >= busySeconds && spent < count * usefulRatio * before ? limit : usualSize)
  }
}

/** Bytes, with its free room. */
function youngSize(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? usualSize
}

/** ms of each collection. */
function timesOfTheYoung(collections: readonly Collection[]): number[] {
  const young = collections.filter(({ detail }) => detail?.kind === constants.NODE_PERFORMANCE_GC_MINOR)
  return young.map(({ duration }) => duration)
}

/** Bytes that may stay in the pool. */
const poolLimit = 128 * 2 ** 20
/** Share of the memory that they may take. */
const poolShare = 1 / 16

/**
 * Keeps the optimized code of a server that rests. 8 to 100 s after its last full collection V8 collects an idle heap once more (the
 * "memory reducer"), by default so that it also drops the hidden classes without a living object: between two requests, most of
 * those that a request uses. All optimized functions that depend on them are thrown away (500 in a server that had answered
 * 2,500 requests), and hundreds of requests after the rest cost about a third more CPU.
 *
 * Without that, the collection at rest still happens, but its pages stay in a pool for new objects instead of going back to the
 * system: some 50 MB after single requests, 95 MB after 200 streams at full speed. After a higher load, or with less memory, they are
 * given back, at the price of the code.
 *
 * V8 reads the flag when such a collection begins. Only for a process of our own. A flag set by the user is kept.
 */
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
 * pool, and whether the memory reducer has collected. It returns whether the next collection may give memory back.
 */
export function createPolicy(memory: number): (size: number, collected: boolean) => boolean {
  const limit = Math.min(poolLimit, memory * poolShare)
  let peak = 0
  let may = false
  return (size, collected) => {
    // The pool has been given back.
    if (collected && may) peak = 0
    peak = Math.max(peak, size)
    may = peak - size > limit
    return may
  }
}

function isOfReducer({ detail }: Collection): boolean {
  return ((detail?.flags ?? 0) & constants.NODE_PERFORMANCE_GC_FLAGS_ALL_EXTERNAL_MEMORY) !== 0
}

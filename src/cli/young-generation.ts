/**
 * Bounds V8's young generation. With many open streams Node lets it grow to 128 MB at once: with 200 streams that is more than all
 * their data. Half of 16 MB has room for a thousand deltas (half of 8 MB costs a fifth more CPU).
 *
 * A collection costs as much as what is still alive, which is what each stream keeps of its last delta, however large the room is. With
 * a thousand streams, or some hundred at full speed, that becomes a tenth of the time. While collections take much of the time, the
 * room may therefore double, up to 128 MB or about a twelfth of the memory. Where it is of no use, because all that is new stays, such
 * as streams that begin, each collection takes longer then, and the room does not double again.
 *
 * V8 reads its limits at startup, but reads the growth factor each time it is about to grow; with a factor of 1 it does not. The size is
 * checked after the turn of the event loop in which there was a collection: it may have doubled more than once by then. V8 also shrinks
 * the space when the process is idle, and must then be allowed to grow again.
 */
import { constants } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'
import { memoryOf, steerFlag, type Collection, type Given } from './v8-flag.ts'

const MB = 2 ** 20
/** Bytes. The space doubles: after this it is about 16 MB. */
const enough = 12 * MB
const enoughForMany = 96 * MB
/** Share of the memory that the room may take before it doubles for the last time. */
const mostShare = 1 / 24
/** Share of the time that collections of the young generation may take. */
const much = 0.04
/** Seconds in a row with more, before the room doubles. */
const longEnough = 5
/** How much longer a collection may take in twice the room, for the room to double again. */
const useful = 1.5

/** Only for a process of our own. A size set by the user is kept. */
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
  const most = Math.max(enough, Math.min(enoughForMany, memory * mostShare))
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
      else if (seconds >= longEnough) before = spent / count
      size = young
      restart()
    }
    for (const ms of times) current.spent += ms
    current.count += times.length
    const took = now - (since ??= now)
    if (took >= 1000) {
      // A mean of the last seconds: what is alive changes with the load.
      count = count * 0.8 + current.count
      spent = spent * 0.8 + current.spent
      if (current.spent > much * took) seconds++
      else {
        restart()
        before = Infinity
      }
      current.count = current.spent = 0
      since = now
    }
    return young < (seconds >= longEnough && spent < count * useful * before ? most : enough)
  }
}

/** Bytes, with its free room. */
function youngSize(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? enough
}

/** ms of each collection. */
function timesOfTheYoung(collections: readonly Collection[]): number[] {
  const young = collections.filter(({ detail }) => detail?.kind === constants.NODE_PERFORMANCE_GC_MINOR)
  return young.map(({ duration }) => duration)
}

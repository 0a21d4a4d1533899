/**
 * Bounds V8's young generation. With many open streams Node lets it grow to 128 MB, and it does not shrink while they are
 * active: with 200 streams that is more than all their data. Half of 16 MB has room for some hundred deltas, and the more
 * frequent collections cost no extra CPU (half of 8 MB costs a fifth more).
 *
 * What a stream keeps of its last delta lives until the next one. With a thousand streams that is longer than half of 16 MB
 * lasts, so all of it moves to the old generation, and its collection stops every stream for a tenth of a second. While that
 * goes on, the bound is twice as high. It does not help what is new to stay, such as streams that begin, nor what lives for
 * seconds, such as all that a run has said: the first is over soon, the second is a small share.
 *
 * V8 reads its limits at startup, but reads the growth factor each time it is about to grow; with a factor of 1 it does not.
 * The size is checked after each collection and may have doubled once more by then. V8 also shrinks the space when the
 * process is idle, and must then be allowed to grow again.
 */
import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

const MB = 2 ** 20
/** Bytes. The space doubles: after this it is about 16 MB. */
const enough = 12 * MB
const enoughForMany = 24 * MB
/** What moves to the old generation is much from this many bytes a second, and this share of all that is new. */
const much = { rate: 12 * MB, share: 0.06 }
/** Seconds in a row with much: fewer are streams that begin. */
const longEnough = 5

/** Only for a process of our own. A size set by the user is kept. */
export function boundYoungGeneration({ execArgv, env }: Pick<NodeJS.Process, 'execArgv' | 'env'> = process): void {
  if ([...execArgv, env['NODE_OPTIONS'] ?? ''].some((given) => /semi[-_]space/u.test(given))) return
  let factor: number | undefined
  let seconds = 0
  let { old: before } = sizes()
  let moved = 0
  let made = 0
  let since = performance.now()
  const look = (collections = 0) => {
    const { young, old } = sizes()
    made += (collections * young) / 2
    moved += Math.max(0, old - before)
    before = old
    const took = (performance.now() - since) / 1000
    if (took >= 1) {
      seconds = moved > much.rate * took && moved > much.share * made ? seconds + 1 : 0
      moved = made = 0
      since += took * 1000
    }
    const bound = seconds >= longEnough ? enoughForMany : enough
    const wanted = young < bound ? 2 : 1
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`)
    factor = wanted
  }
  new PerformanceObserver((list) => look(list.getEntries().filter(isOfTheYoung).length)).observe({ entryTypes: ['gc'] })
  look()
}

/** Bytes: the young generation with its free room, and what the old one holds, garbage included. */
function sizes(): { young: number; old: number } {
  const spaces = new Map(getHeapSpaceStatistics().map((space) => [space.space_name, space]))
  return { young: spaces.get('new_space')?.space_size ?? enough, old: spaces.get('old_space')?.space_used_size ?? 0 }
}

function isOfTheYoung(entry: PerformanceEntry & { detail?: { kind?: number } }): boolean {
  return entry.detail?.kind === constants.NODE_PERFORMANCE_GC_MINOR
}

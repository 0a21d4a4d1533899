/**
 * Bounds V8's young generation. With many open streams Node lets it grow to 128 MB, and it does not shrink while they are
 * active: with 200 streams that is more than all their data. Half of 16 MB has room for some hundred deltas, and the more
 * frequent collections cost no extra CPU (half of 8 MB costs a fifth more).
 *
 * What a stream keeps of its last delta lives until the next one. With a thousand streams that is longer than half of 16 MB
 * lasts, so all of it moves to the old generation, and its collection stops every stream for a tenth of a second. As long as
 * that much moves, the bound is twice as high.
 *
 * V8 reads its limits at startup, but reads the growth factor each time it is about to grow; with a factor of 1 it does not.
 * The size is checked after each collection and may have doubled once more by then. V8 also shrinks the space when the
 * process is idle, and must then be allowed to grow again.
 */
import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

const MB = 2 ** 20
/** Bytes. The space doubles: after this it is about 16 MB. */
const enough = 12 * MB
const enoughForMany = 24 * MB
/** Bytes a second that move to the old generation. */
const much = 12 * MB

/** Only for a process of our own. A size set by the user is kept. */
export function boundYoungGeneration({ execArgv, env }: Pick<NodeJS.Process, 'execArgv' | 'env'> = process): void {
  if ([...execArgv, env['NODE_OPTIONS'] ?? ''].some((given) => /semi[-_]space/u.test(given))) return
  let factor: number | undefined
  let bound = enough
  let { old: before } = sizes()
  let moved = 0
  let since = performance.now()
  const look = () => {
    const { young, old } = sizes()
    moved += Math.max(0, old - before)
    before = old
    const seconds = (performance.now() - since) / 1000
    if (seconds >= 1) {
      bound = moved > much * seconds ? enoughForMany : enough
      moved = 0
      since += seconds * 1000
    }
    const wanted = young < bound ? 2 : 1
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`)
    factor = wanted
  }
  new PerformanceObserver(look).observe({ entryTypes: ['gc'] })
  look()
}

/** Bytes: the young generation with its free room, and what the old one holds, garbage included. */
function sizes(): { young: number; old: number } {
  const spaces = new Map(getHeapSpaceStatistics().map((space) => [space.space_name, space]))
  return { young: spaces.get('new_space')?.space_size ?? enough, old: spaces.get('old_space')?.space_used_size ?? 0 }
}

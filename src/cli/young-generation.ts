/**
 * A bound for what V8 keeps for new objects. Node lets it grow to 128 MB as soon as many streams are open, and never has it
 * touched less again while they speak: with 200 of them that is more than all that they hold. Half of 16 MB is room for
 * some hundred deltas, and collecting that often costs no more CPU (half of 8 MB does, by a fifth).
 *
 * V8 takes its limits when the process starts, but asks for the growth factor whenever it is about to grow; while it is 1
 * nothing does. What is looked at behind each collection may have doubled once more by then. V8 also gives memory back when
 * nobody asks for anything, and must then be let to grow again.
 */
import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** It doubles: behind this it is 16 MB, give or take a page. */
const enough = 12 * 2 ** 20

/** For a process that is ours alone. Whoever gave it a size of his own keeps it. */
export function boundYoungGeneration({ execArgv, env }: Pick<NodeJS.Process, 'execArgv' | 'env'> = process): void {
  if ([...execArgv, env['NODE_OPTIONS'] ?? ''].some((given) => /semi[-_]space/u.test(given))) return
  let factor: number | undefined
  const look = () => {
    const wanted = youngSize() < enough ? 2 : 1
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`)
    factor = wanted
  }
  new PerformanceObserver(look).observe({ entryTypes: ['gc'] })
  look()
}

function youngSize(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? enough
}

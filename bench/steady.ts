/**
 * A virtual machine's core may run at half speed for seconds or minutes while another tenant uses its sibling. So each row is
 * measured in a pair with the reference row, between short spins of fixed work that show whether the core's speed has
 * changed. If it has, the pair is measured again.
 */
import type { Sample } from './scenario.ts'

/** Maximum difference between two spins, relative to the shorter one. */
const tolerance = 0.25

const text = JSON.stringify({ type: 'text-delta', id: 't', delta: 'x'.repeat(40), numbers: [1, 2, { three: 3 }] })

/** Time for a fixed amount of work in ms: the best of three, because the first may be slow for other reasons. */
export function spin(): number {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 3; i++) {
    const began = performance.now()
    let length = 0
    for (let n = 0; n < 3000; n++) length += JSON.stringify(JSON.parse(text)).length
    if (length > 0) best = Math.min(best, performance.now() - began)
  }
  return best
}

/** Time for a sixth of that work in ms, once: the core's current speed. */
export function glance(): number {
  const began = performance.now()
  let length = 0
  for (let n = 0; n < 500; n++) length += JSON.stringify(JSON.parse(text)).length
  return length > 0 ? performance.now() - began : 0
}

/** A glance counts as full speed up to this multiple of the shortest one. */
const nearly = 1.15

/** Checks whether every core runs at the highest speed seen so far. `glances`: one for each relevant core. */
export function createSpeedometer(glances: () => Promise<number[]>): () => Promise<boolean> {
  let best: number[] = []
  return async () => {
    const times = await glances()
    best = times.map((ms, core) => Math.min(ms, best[core] ?? ms))
    return times.every((ms, core) => ms <= best[core]! * nearly)
  }
}

export interface Steady {
  /** Measures these one after the other, at a constant machine speed if possible. */
  measure(each: (() => Promise<Sample>)[]): Promise<Sample[]>
  /** Notes for the report. */
  notes(): string[]
}

/**
 * `speeds`: a spin on each relevant core. `tries`: maximum attempts per pair. If the speed changes in every attempt, the last
 * one counts and the notes say so.
 */
export function createSteady(speeds: () => Promise<number[]>, tries: number): Steady {
  const seen: number[] = []
  let samples = 0
  let again = 0
  let unsteady = 0

  async function measureOnce(each: (() => Promise<Sample>)[]) {
    const spins = [await speeds()]
    const results: Sample[] = []
    for (const measure of each) {
      results.push(await measure())
      spins.push(await speeds())
    }
    const steady = spins[0]!.every((_, core) => {
      const ofCore = spins.map((spun) => spun[core]!)
      return Math.max(...ofCore) <= Math.min(...ofCore) * (1 + tolerance)
    })
    return { results, steady, speed: spins[0]![0]! }
  }

  return {
    async measure(each) {
      samples++
      for (let attempt = 1; ; attempt++) {
        const { results, steady, speed } = await measureOnce(each)
        if (!steady && attempt < tries) {
          again++
          continue
        }
        if (!steady) unsteady++
        seen.push(speed)
        return results
      }
    },
    notes() {
      const slowest = Math.max(...seen) / Math.min(...seen)
      return [
        `The machine's speed varied by a factor of ${slowest.toFixed(1)}. ${again} pairs were measured again because it changed during the measurement; ${unsteady} of ${samples} pairs are included although it changed.`,
      ]
    },
  }
}

/**
 * A virtual machine's core may run at half its speed for seconds or minutes, when a neighbour keeps the other half of it
 * busy. So what is compared is measured in pairs, the row beside the row that ratios are of, between short spins of fixed
 * work that tell whether both had the same machine; a pair that had not is measured again.
 */
import type { Sample } from './scenario.ts'

/** How far two spins may be apart, as a part of the shorter. */
const tolerance = 0.25

const text = JSON.stringify({ type: 'text-delta', id: 't', delta: 'x'.repeat(40), numbers: [1, 2, { three: 3 }] })

/** Milliseconds of some work, always the same: the best of three, for the first may be slow for other reasons. */
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

/** Milliseconds of a sixth of it, once: how fast the core is at this moment. */
export function glance(): number {
  const began = performance.now()
  let length = 0
  for (let n = 0; n < 500; n++) length += JSON.stringify(JSON.parse(text)).length
  return length > 0 ? performance.now() - began : 0
}

/** How much longer than the shortest of all a glance at full speed may take. */
const nearly = 1.15

/** Says whether every core is as fast at this moment as it has ever been. `glances`: one on each core that matters. */
export function createSpeedometer(glances: () => Promise<number[]>): () => Promise<boolean> {
  let best: number[] = []
  return async () => {
    const times = await glances()
    best = times.map((ms, core) => Math.min(ms, best[core] ?? ms))
    return times.every((ms, core) => ms <= best[core]! * nearly)
  }
}

export interface Steady {
  /** All of these, one after the other, with the machine at one speed as far as can be had. */
  measure(each: (() => Promise<Sample>)[]): Promise<Sample[]>
  /** What there is to say about it. */
  notes(): string[]
}

/**
 * `speeds`: a spin on each core that matters. `tries`: how often a pair is measured at most; on a machine that never keeps its
 * speed the last one counts, and the notes say so.
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
        `The machine's speed varied by a factor of ${slowest.toFixed(1)}; ${again} pairs were measured again because it changed in the middle, ${unsteady} of ${samples} stand though it did.`,
      ]
    },
  }
}

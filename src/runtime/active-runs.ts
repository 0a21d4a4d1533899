/**
 * Limits how many runs of an agent execute at the same time, over all processes of the store: `limits.activeRuns`. A run holds a place from before
 * its first entry until it ends or is suspended. A run that continues after a suspension is never refused: it takes the next free place.
 */
import { MillraceError } from '../part/error.ts'
import type { Limits, Permit } from '../part/limits.ts'
import { pause } from '../async/pause.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'

export interface ActiveRuns {
  /** Takes a place for a new run. Rejects with `too-many-runs` if none is free. */
  enter(run: string, agent: string, pipeline: Pipeline): Promise<void>
  /** The run executes here: if it has no place, it takes the next free one. */
  goOn(run: string, agent: string, pipeline: Pipeline): void
  /** The run no longer executes here, or was never started. */
  leave(run: string): void
}

/** ms between two attempts of a continued run to get a place. */
const retry = 1000
/** Seconds for `Retry-After`: a place may be free by then. */
const placeRetry = 5

export function createActiveRuns(limits: Limits | undefined): ActiveRuns {
  const places = new Map<string, Permit>()

  const occupy = (agent: string, most: number) => limits!.occupy(`agent:${agent}`, most)
  const limitOf = ({ limits: set }: Pipeline) => (limits === undefined ? undefined : set?.activeRuns)

  async function take(agent: string, most: number, left: AbortController): Promise<Permit | undefined> {
    for (; !left.signal.aborted; await pause(retry, left.signal, { background: true })) {
      const place = await occupy(agent, most).catch(() => undefined)
      if (place !== undefined) return place
    }
    return undefined
  }

  return {
    async enter(run, agent, pipeline) {
      const most = limitOf(pipeline)
      if (most === undefined) return
      const place = await occupy(agent, most)
      if (place === undefined) throw tooMany(agent, most)
      places.set(run, place)
    },

    goOn(run, agent, pipeline) {
      const most = limitOf(pipeline)
      if (most === undefined || places.has(run)) return
      const left = new AbortController()
      const taking = take(agent, most, left)
      places.set(run, {
        leave() {
          left.abort()
          void taking.then((place) => place?.leave())
        },
      })
    },

    leave(run) {
      places.get(run)?.leave()
      places.delete(run)
    },
  }
}

function tooMany(agent: string, most: number): MillraceError {
  const limit = `The limit is ${most} at the same time (limits.activeRuns). Try again when one has ended.`
  const message = `Agent "${agent}" has too many active runs. ${limit}`
  return new MillraceError('too-many-runs', message, { status: 429, retryAfter: placeRetry })
}

/**
 * Limits how many runs of an agent execute at the same time, over all processes of the store: `limits.activeRuns`. A run holds a place from before
 * its first entry until it ends or is suspended. A run that continues after a suspension is never refused: it takes the next free place.
 *
 * The start of a user waits a while for a place, and tenants take turns ({@link FairLine}): one that fills all places keeps nobody out. Those of
 * another process wait there.
 */
import { MillraceError } from '../part/error.ts'
import type { Limits, Permit } from '../part/limits.ts'
import type { RunUser } from '../part/principal.ts'
import { pause } from '../async/pause.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { FairLine, type Party } from './fair-line.ts'

export interface ActiveRuns {
  /**
   * Takes a place for a new run. Rejects with `too-many-runs` if none is free: at once for a run of no one, and of a tenant for which as many starts
   * wait as there are places, otherwise after some seconds.
   */
  enter(run: string, agent: string, pipeline: Pipeline, user?: RunUser): Promise<void>
  /** The run executes here: if it has no place, it takes the next free one. */
  goOn(run: string, agent: string, pipeline: Pipeline): void
  /** The run no longer executes here, or was never started. */
  leave(run: string): void
}

export interface ActiveRunsOptions {
  /** Resolves when a start has waited for long enough. */
  patience?: (signal: AbortSignal) => Promise<void>
}

/** ms between two attempts of a continued run to get a place. */
const retry = 1000
/** ms between two attempts to get a place that another process may have left. */
const retrySoon = 100
/** Seconds for `Retry-After`: a place may be free by then. Starts of users wait as long. */
const placeRetry = 5

/** The starts of an agent that wait, and who has its places. */
interface AgentLine {
  starts: FairLine<(place: Permit) => void>
  most: number
  /** Free places are asked for. Aborted when one may be free. */
  asking?: AbortController | undefined
  /** Runs of users with a place, and starts that wait. Without any, the line is dropped. */
  users: number
}

export function createActiveRuns(limits: Limits | undefined, options: ActiveRunsOptions = {}): ActiveRuns {
  const { patience = (signal) => pause(placeRetry * 1000, signal) } = options
  const places = new Map<string, Permit>()
  const lines = new Map<string, AgentLine>()

  const occupy = (agent: string, most: number) => limits!.occupy(`agent:${agent}`, most)
  const limitOf = ({ limits: set }: Pipeline) => (limits === undefined ? undefined : set?.activeRuns)

  async function take(agent: string, most: number, left: AbortController): Promise<Permit | undefined> {
    for (; !left.signal.aborted; await pause(retry, left.signal, { background: true })) {
      const place = await occupy(agent, most).catch(() => undefined)
      if (place !== undefined) return place
    }
    return undefined
  }

  /** Undefined if it waits in vain. */
  async function waitFor(line: AgentLine, agent: string, party: Party): Promise<Permit | undefined> {
    const given = Promise.withResolvers<Permit | undefined>()
    const leaveLine = line.starts.join(party, given.resolve)
    void ask(line, agent)
    const over = new AbortController()
    void patience(over.signal).then(() => {
      leaveLine()
      given.resolve(undefined)
    })
    const place = await given.promise
    over.abort()
    return place
  }

  /** Gives free places to starts, while any wait. */
  async function ask(line: AgentLine, agent: string): Promise<void> {
    if (line.asking !== undefined) return
    while (line.starts.size > 0) {
      line.asking = new AbortController()
      const place = await occupy(agent, line.most).catch(() => undefined)
      if (place === undefined) await pause(retrySoon, line.asking.signal, { background: true })
      else {
        const give = line.starts.next()
        if (give === undefined) place.leave()
        else give(place)
      }
    }
    line.asking = undefined
  }

  return {
    async enter(run, agent, pipeline, user) {
      const most = limitOf(pipeline)
      if (most === undefined) return
      if (user === undefined) {
        const place = await occupy(agent, most)
        if (place === undefined) throw tooMany(agent, most)
        places.set(run, place)
        return
      }
      const party = { tenant: user.tenant ?? '', owner: user.id }
      const line = lines.get(agent) ?? { starts: new FairLine(), most, users: 0 }
      lines.set(agent, line)
      line.most = most
      line.users++
      const release = () => {
        if (--line.users === 0 && lines.get(agent) === line) lines.delete(agent)
      }
      try {
        let place = line.starts.size > 0 ? undefined : await occupy(agent, most)
        if (place === undefined && line.starts.waitingOf(party.tenant) < most) place = await waitFor(line, agent, party)
        if (place === undefined) throw tooMany(agent, most)
        const unserve = line.starts.serve(party)
        const held = place
        places.set(run, {
          leave() {
            held.leave()
            unserve()
            release()
            line.asking?.abort()
          },
        })
      } catch (error) {
        release()
        throw error
      }
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

/** Keeps a store small in the background: every hour, in slices of a few ms, for at most a tenth of the time. */
import { pause } from '../async/pause.ts'
import { MillraceError, messageOf } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import type { Paced, Upkeep } from '../part/upkeep.ts'
import { policyOf, type Policy, type UpkeepConfig } from './policy.ts'
import { compactRuns, pruneRuns, type CompactedRuns, type PrunedRuns } from './upkeep.ts'

const firstAfter = 60_000
const every = 3_600_000
/** Unused space that is left for new runs, as a share of what is used. */
const spare = 0.1

/** What {@link keepSmall} did; `compacted` is absent if the policy merges nothing. */
export interface Kept {
  compacted: CompactedRuns | undefined
  pruned: PrunedRuns
}

/** Does once what the policy asks for. */
export async function keepSmall(
  { upkeep, records }: Pick<Store, 'upkeep' | 'records'>,
  { compactAfter, maxAge, maxBytes }: Policy,
  { now = Date.now(), rest }: Paced & { now?: number } = {},
): Promise<Kept | undefined> {
  if (upkeep === undefined) return undefined
  const paced = rest && { rest }
  // What is made of the log is made of whole runs.
  await records?.settle()
  const pruned = await pruneRuns(upkeep, {
    idleBefore: maxAge === undefined ? undefined : now - maxAge,
    maxBytes,
    ...paced,
  })
  const isDue = compactAfter !== undefined
  const compacted = isDue ? await compactRuns(upkeep, { endedBefore: now - compactAfter, ...paced }) : undefined
  await vacuumIfDue(upkeep, paced)
  return { compacted, pruned }
}

async function vacuumIfDue(upkeep: Upkeep, paced: Paced | undefined): Promise<void> {
  const { used, free } = await upkeep.size()
  if (free > Math.max(used * spare, 8 * 1024 * 1024)) await upkeep.vacuum(paced)
}

/** Rests so long that the work takes the share of the time. Rejects when the signal aborts. */
export function createRest(share: number, signal?: AbortSignal): () => Promise<void> {
  let since = performance.now()
  return async () => {
    const worked = performance.now() - since
    await pause(Math.ceil(worked * (1 / share - 1)), signal, { background: true })
    signal?.throwIfAborted()
    since = performance.now()
  }
}

export interface Housekeeping {
  /** Stops at the next slice. */
  close(): Promise<void>
}

/** Does what a config asks for. */
export function keepHouse(store: Store, config: UpkeepConfig | undefined, log: (line: string) => void): Housekeeping {
  return startHousekeeping(store, policyOf(config), log)
}

/** `log` gets a line about what was deleted, and about a failure. */
export function startHousekeeping(store: Store, policy: Policy, log: (line: string) => void): Housekeeping {
  const closing = new AbortController()
  const { signal } = closing

  async function go(): Promise<void> {
    for (let delay = firstAfter; ; delay = every) {
      await pause(delay, signal, { background: true })
      if (signal.aborted) return
      try {
        const done = await keepSmall(store, policy, { rest: createRest(0.1, signal) })
        if (done !== undefined && done.pruned.runs > 0)
          log(`deleted ${done.pruned.runs} old runs: see record.retention`)
      } catch (error) {
        const isClosed = error instanceof MillraceError && error.code === 'store-closed'
        if (signal.aborted || isClosed) return
        log(`old runs could not be compacted or deleted: ${messageOf(error)}`)
      }
    }
  }

  const going = go()
  return {
    async close() {
      closing.abort()
      await going
    },
  }
}

/**
 * Whether a server may delete yet. The first one over old data, or the first with a shorter retention, may be a mistake: what would take
 * more than a tenth of the runs waits for a day, in which somebody can change the config, export the runs, or delete them by hand.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Store, timeOf } from '../part/log.ts'
import { parseJson } from '../part/json.ts'
import type { Paced } from '../part/upkeep.ts'
import { startHousekeeping, type Housekeeping } from './housekeeping.ts'
import { policyOf, sayPolicy, type Policy, type UpkeepConfig } from './policy.ts'
import { pruneRuns } from './upkeep.ts'

const day = 86_400_000
const share = 0.1

/** The last retention of the folder, and the end of its waiting time. */
interface Noted {
  maxAge?: number
  maxBytes?: number
  heldUntil?: number
}

export interface Hold {
  /** Whether old runs may be deleted now. */
  allows(paced?: Paced): Promise<boolean>
}

/** `file`: notes the retention of the folder. */
export function createHold(
  store: Pick<Store, 'upkeep' | 'runs' | 'now'>,
  { maxAge, maxBytes }: Policy,
  { file, log, now = () => timeOf(store) }: { file: string; log: (line: string) => void; now?: () => number },
): Hold {
  const limits = { ...(maxAge !== undefined && { maxAge }), ...(maxBytes !== undefined && { maxBytes }) }

  function note(heldUntil?: number): true {
    // Whole or not at all.
    writeFileSync(`${file}.new`, `${JSON.stringify({ ...limits, ...(heldUntil !== undefined && { heldUntil }) })}\n`, {
      mode: 0o600,
    })
    renameSync(`${file}.new`, file)
    return true
  }

  async function wouldTakeMuch(paced: Paced): Promise<{ runs: number; of: number } | undefined> {
    const idleBefore = maxAge === undefined ? undefined : now() - maxAge
    const { runs } = await pruneRuns(store.upkeep!, { idleBefore, maxBytes, dryRun: true, ...paced })
    if (runs === 0) return undefined
    const of = await countRuns(store)
    return runs > of * share ? { runs, of } : undefined
  }

  return {
    async allows(paced = {}) {
      if (store.upkeep === undefined) return true
      const noted = readNoted(file)
      const isLonger = noted !== undefined && !isShorter(maxAge, noted.maxAge) && !isShorter(maxBytes, noted.maxBytes)
      // A longer retention is checked again only while it waits.
      if (isLonger && noted.heldUntil === undefined) return isSame(noted, limits) || note()
      const until = isLonger ? noted.heldUntil! : now() + day
      if (now() >= until) return note()
      const much = await wouldTakeMuch(paced)
      if (much === undefined) return note()
      if (!isLonger) {
        note(until)
        const why = noted === undefined ? 'This is the first start over these runs' : 'They were kept for longer before'
        log(
          `${much.runs} of ${much.of} runs are older or more than "record.retention" keeps (${sayPolicy(limits)}). ${why}, so they stay until ` +
            `${new Date(until).toISOString()}. To keep them, change record.retention; to delete them now, use millrace prune.`,
        )
      } else if (!isSame(noted, limits)) note(until)
      return false
    },
  }
}

function isShorter(now: number | undefined, before: number | undefined): boolean {
  return (now ?? Infinity) < (before ?? Infinity)
}

function isSame(noted: Noted, { maxAge, maxBytes }: Noted): boolean {
  return noted.maxAge === maxAge && noted.maxBytes === maxBytes
}

function readNoted(file: string): Noted | undefined {
  try {
    return parseJson(readFileSync(file, 'utf8')) as Noted
  } catch {
    // It is not there, or somebody has changed it: like a first start.
    return undefined
  }
}

async function countRuns({ runs }: Pick<Store, 'runs'>): Promise<number> {
  let count = 0
  let before: string | undefined
  for (;;) {
    const rows = await runs.list({ limit: 1000, ...(before !== undefined && { before }) })
    count += rows.length
    if (rows.length < 1000) return count
    before = rows.at(-1)!.id
  }
}

/** Keeps house as the config says. It is here because edge runtimes have housekeeping and no folder. `data`: the folder of the store, if it has one; the retention is noted there. */
export function keepHouse(
  store: Store,
  config: UpkeepConfig | undefined,
  log: (line: string) => void,
  data?: string,
): Housekeeping {
  const policy = policyOf(config, store.fleet)
  const hold = data === undefined ? undefined : createHold(store, policy, { file: join(data, 'retention.json'), log })
  return startHousekeeping(store, policy, log, hold)
}

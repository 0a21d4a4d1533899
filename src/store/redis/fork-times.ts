/**
 * When the forks of older versions were made, which did not note it: their log begins with that of their source, and their row says that they
 * began when it did. It is the time of the first entry of their own.
 */
import { hasEnded } from '../../part/log.ts'
import type { Entry } from '../../part/entry.ts'
import type { StoredRow } from '../run-row.ts'

/** Forks of which it is remembered: those in an archive take long to look up. */
const most = 1000

export interface ForkTimes {
  /** Epoch ms; undefined if it has no entry of its own. `seq`: of the last one that it shares. */
  of(run: string, seq: number): Promise<number | undefined>
  /** `origin`: `<seq> <source>`. */
  correct(row: StoredRow, origin: string | null | undefined): Promise<StoredRow>
}

export function createForkTimes(read: (run: string, after: number) => Promise<Entry[]>): ForkTimes {
  const known = new Map<string, number>()

  async function of(run: string, seq: number): Promise<number | undefined> {
    const found = known.get(run) ?? (await read(run, seq))[0]?.timestamp
    if (found === undefined) return undefined
    known.set(run, found)
    if (known.size > most) known.delete(known.keys().next().value!)
    return found
  }

  return {
    of,
    async correct(row, origin) {
      if (!isUndated(row, origin)) return row
      const seq = Number.parseInt(origin!, 10)
      // One that cannot be read must not keep the others from being listed.
      const at = await of(row.id, seq).catch(() => undefined)
      const { firstTokenMs, ...rest } = row
      // Nobody knows whether the fork or its source said it. If it was said, nothing that comes is the first.
      const sharedTo = firstTokenMs === undefined || hasEnded(row.status) ? seq : Number.MAX_SAFE_INTEGER
      return at === undefined ? rest : { ...rest, startedAt: at, sharedTo }
    },
  }
}

/** Whether an older version has made this fork. */
export function isUndated({ sharedTo }: StoredRow, origin: string | null | undefined): boolean {
  return sharedTo === undefined && typeof origin === 'string' && origin !== ''
}

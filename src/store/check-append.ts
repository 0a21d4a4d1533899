import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { hasEnded, type RunRow } from '../part/log.ts'

/**
 * Enforces one writer at a time. Throws `stale-writer` for an older epoch, a `seq` that is already stored or skips one, and a
 * run that has ended; `bad-entry` for a run that does not start with `run-start`, because its row needs that entry.
 */
export function checkAppend(
  run: string,
  row: Pick<RunRow, 'epoch' | 'lastSeq' | 'status'> | undefined,
  epoch: number,
  entries: readonly Entry[],
): void {
  if (row && epoch < row.epoch) {
    throw stale(`run ${run} was taken over by epoch ${row.epoch}; the writer of epoch ${epoch} must stop`)
  }
  if (row && hasEnded(row.status)) throw stale(`run ${run} has ended (${row.status}); nothing may follow run-end`)
  let due = (row?.lastSeq ?? 0) + 1
  for (const [i, { seq, type }] of entries.entries()) {
    if (seq !== due) {
      const why = seq < due ? 'it is already stored: is another writer active?' : 'entries before it are missing'
      throw stale(`run ${run} expects seq ${due}, got ${seq}: ${why}`)
    }
    if (type === 'run-end' && i < entries.length - 1) throw stale(`run ${run}: nothing may follow run-end (${seq})`)
    due++
  }
  if (!row && entries[0]?.type !== 'run-start') {
    throw new MillraceError(
      'bad-entry',
      `run ${run} starts with ${entries[0]?.type}; the first entry must be run-start`,
    )
  }
}

function stale(message: string): MillraceError {
  return new MillraceError('stale-writer', message, { status: 409 })
}

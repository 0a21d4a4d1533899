import { MillraceError, messageOf } from '../part/error.ts'

export function storeClosed(what: string): MillraceError {
  return new MillraceError('store-closed', `cannot ${what}: the store is closed`, { status: 503 })
}

/** Clients see `what`, so it must not contain the path. The path and the system's error are in `detail`. */
export function storeFailed(what: string, path: string, cause: unknown): MillraceError {
  const detail = `${path}: ${messageOf(cause)}`
  return new MillraceError('store-failed', `${what}: the store failed`, { status: 503, detail, cause })
}

/** SQLite's codes for errors of a value: too long, of the wrong type, out of range, against CHECK, and NULL where not allowed. */
const ofValue: ReadonlySet<number> = new Set([18, 20, 25, 275, 1299])

/** Whether the error is caused by a value, not by the disk or the database: other runs can still be stored. */
export function isOfValue(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError) return true
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown }
  return code === 'ERR_SQLITE_ERROR' && ofValue.has(Number(errcode))
}

/** The error of a write with such a value. */
export function valueRefused(cause: unknown): MillraceError {
  const message = 'The store does not take a value of this run: check the types of the fields of its entries.'
  return new MillraceError('bad-entry', message, { status: 400, detail: messageOf(cause), cause })
}

/** Checks that a run can be forked at this entry. `last`: the last `seq` of the source, if there is one. */
export function checkFork(source: string, seq: number, last: number | undefined): void {
  if (last === undefined) throw new MillraceError('unknown-run', `there is no run ${source} to fork`, { status: 404 })
  if (Number.isInteger(seq) && seq >= 1 && seq <= last) return
  throw new MillraceError('bad-entry', `run ${source} has entries 1 to ${last}, none with seq ${seq}`, { status: 400 })
}

/** The error of a reader whose run was deleted. */
export function runDropped(run: string): MillraceError {
  return new MillraceError('unknown-run', `run ${run} was deleted`, { status: 404 })
}

/** The error of a reader or writer whose entries the store has lost. */
export function entriesLost(run: string): MillraceError {
  const what = `the store has lost entries of run ${run} that were seen already`
  return new MillraceError('store-lost', `${what}: read the run from the start`, { status: 410 })
}

export function runExists(run: string): MillraceError {
  return new MillraceError('run-exists', `run ${run} exists and is not this fork`, { status: 409 })
}

/** The error of a read of damaged data. `key`: the name of the damaged key. Everything else continues. */
export function storeDamaged(what: string, key: string): MillraceError {
  return new MillraceError('store-damaged', `${what}: what the store has of it is damaged: ${key}`)
}

/** The error code of a run whose row cannot be read. */
export const unreadableRow = 'unreadable-row'

export function unknownCursor(before: string): MillraceError {
  return new MillraceError('unknown-run', `unknown run ${before} in \`before\`: list again without it`, {
    status: 404,
  })
}

/** Whether another process has locked the file. */
export function isBusy(error: unknown): boolean {
  // The low byte of the extended code: SQLITE_BUSY, SQLITE_LOCKED.
  const code = Number((error as { errcode?: unknown }).errcode) & 0xff
  return code === 5 || code === 6
}

import { MillraceError, messageOf } from '../part/error.ts'

export function storeClosed(what: string): MillraceError {
  return new MillraceError('store-closed', `cannot ${what}: the store is closed`, { status: 503 })
}

/** Clients see `what`, so it must not contain the path. The path and the system's error are in `detail`. */
export function storeFailed(what: string, path: string, cause: unknown): MillraceError {
  const detail = `${path}: ${messageOf(cause)}`
  return new MillraceError('store-failed', `${what}: the store failed`, { status: 503, detail, cause })
}

/** The error code of a run whose row cannot be read. */
export const unreadableRow = 'unreadable-row'

export function unknownCursor(before: string): MillraceError {
  return new MillraceError('unknown-run', `unknown run ${before} in \`before\`: list again without it`, {
    status: 404,
  })
}

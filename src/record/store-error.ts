import { MillraceError, messageOf } from '../part/error.ts'

export function storeClosed(what: string): MillraceError {
  return new MillraceError('store-closed', `cannot ${what}: the store is closed`, { status: 503 })
}

/** `what`, which clients see, names no file; where it is and what the system said are the `detail`. */
export function storeFailed(what: string, path: string, cause: unknown): MillraceError {
  const detail = `${path}: ${messageOf(cause)}`
  return new MillraceError('store-failed', `${what}: the store failed`, { status: 503, detail, cause })
}

/** The code of a run whose row in the list holds something that is not ours. */
export const unreadableRow = 'unreadable-row'

export function unknownCursor(before: string): MillraceError {
  return new MillraceError('unknown-run', `run ${before}, named by \`before\`, is not kept: list again without it`, {
    status: 404,
  })
}

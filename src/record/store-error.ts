import { MillraceError, messageOf } from '../part/error.ts'

export function storeClosed(what: string): MillraceError {
  return new MillraceError('store-closed', `cannot ${what}: the store is closed`, { status: 503 })
}

export function storeFailed(what: string, cause: unknown): MillraceError {
  return new MillraceError('store-failed', `${what}: ${messageOf(cause)}`, { status: 503, cause })
}

export function unknownCursor(before: string): MillraceError {
  return new MillraceError('unknown-run', `run ${before}, named by \`before\`, is not kept: list again without it`, {
    status: 404,
  })
}

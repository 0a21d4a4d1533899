import { type MillraceError, messageOf } from '../../part/error.ts'
import { storeFailed } from '../store-error.ts'

/** `place`: the address without user and password. Redis itself may name the user in what it says. */
export function redisFailed(what: string, place: string, error: unknown): MillraceError {
  const message = messageOf(error)
  const shown = message.replace(/\bUser \S+ has no permissions/u, 'This user has no permissions')
  return storeFailed(what, place, shown === message ? error : new Error(shown))
}

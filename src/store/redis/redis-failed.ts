import { MillraceError, messageOf } from '../../part/error.ts'
import { storeDamaged, storeFailed } from '../store-error.ts'
import { damagedKey } from './damage-script.ts'

/** `place`: the address without user and password. Redis itself may name the user in what it says. */
export function redisFailed(what: string, place: string, error: unknown): MillraceError {
  const message = messageOf(error)
  const key = new RegExp(`${damagedKey} ([^]*)$`, 'u').exec(message)?.[1]
  if (key !== undefined) return storeDamaged(what, key)
  const shown = message.replace(/\bUser \S+ has no permissions/u, 'This user has no permissions')
  return storeFailed(what, place, shown === message ? error : new Error(shown))
}

/** A command of ours that is refused because its key is not what it should be names that key. */
export function naming(error: unknown, [, key = '']: readonly string[]): unknown {
  return messageOf(error).startsWith('WRONGTYPE') ? new Error(`${damagedKey} ${key} is of another type`) : error
}

/** For `catch`: what to go on with if a key is damaged. */
export function damagedIs<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof MillraceError && error.code === 'store-damaged') return value
    throw error
  }
}

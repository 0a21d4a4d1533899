import { messageOf, type MillraceError } from '../part/error.ts'

/** SQLite's primary result codes. */
const reasons = new Map([
  [5, 'the database is locked by another process'],
  [8, 'the database is read-only'],
  [10, 'the disk reports an error'],
  [11, 'the database is damaged'],
  [13, 'the disk is full'],
  [14, 'the database file cannot be opened'],
])

/** Why a store fails, without paths: `/health` is public. */
export function storeReason({ cause }: MillraceError): string {
  // Redis says so, also of one command of a script.
  if (/\bOOM command not allowed\b/u.test(messageOf(cause)))
    return 'Runs cannot be stored: the memory of the store is full.'
  const code = Number((cause as { errcode?: unknown } | undefined)?.errcode) & 0xff
  return `Runs cannot be stored: ${reasons.get(code) ?? 'the store failed'}.`
}

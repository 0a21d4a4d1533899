import { MillraceError } from './error.ts'

/**
 * Throws `bad-key` for a key that no client could send in a header. `name` says where it comes from; the message does not
 * repeat the key.
 */
export function checkKey(key: string, name: string): void {
  if (/^[\x21-\x7e]+$/u.test(key)) return
  const what = /[\r\n]$/u.test(key)
    ? 'ends in a line break, as files often do: remove it'
    : 'must consist of printable ASCII characters without spaces'
  throw new MillraceError('bad-key', `${name} ${what}.`)
}

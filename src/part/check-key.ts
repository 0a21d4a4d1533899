import { MillraceError } from './error.ts'

/**
 * Throws `bad-key` for a key that is not valid in a header. The message contains `name`, the place of the key, but never the
 * key itself.
 */
export function checkKey(key: string, name: string): void {
  if (/^[\x21-\x7e]+$/u.test(key)) return
  const what = /[\r\n]$/u.test(key)
    ? 'ends with a line break, as text from files often does: remove it'
    : 'must consist of printable ASCII characters without spaces'
  throw new MillraceError('bad-key', `${name} ${what}.`)
}

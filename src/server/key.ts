import { MillraceError } from '../part/error.ts'

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

/**
 * Compares an `Authorization: Bearer` header with the key, in a time that depends on nothing but the length of what was
 * given; at once, because a digest of the Web comes from another thread and every request would wait for it.
 */
export function createKeyCheck(key: string): (header: string | null) => boolean {
  return (header) => {
    const given = /^Bearer\s+(.+)$/iu.exec(header ?? '')?.[1] ?? ''
    let difference = given.length ^ key.length
    for (let i = 0; i < given.length; i++) difference |= given.charCodeAt(i) ^ key.charCodeAt(i % key.length)
    return difference === 0 && given !== ''
  }
}

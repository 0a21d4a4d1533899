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

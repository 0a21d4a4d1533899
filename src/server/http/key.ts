/**
 * Compares an `Authorization: Bearer` header with the key, in a time that depends only on the length of the header. Synchronous:
 * Web Crypto digests run on another thread, and every request would wait for one.
 */
export function createKeyCheck(key: string): (header: string | null) => boolean {
  return (header) => {
    const given = /^Bearer\s+(.+)$/iu.exec(header ?? '')?.[1] ?? ''
    let difference = given.length ^ key.length
    for (let i = 0; i < given.length; i++) difference |= given.charCodeAt(i) ^ key.charCodeAt(i % key.length)
    return difference === 0 && given !== ''
  }
}

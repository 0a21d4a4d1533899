/** Compares an `Authorization: Bearer` header with the key. */
export function createKeyCheck(key: string): (header: string | null) => boolean {
  return (header) => isSameSecret(/^Bearer\s+(.+)$/iu.exec(header ?? '')?.[1] ?? '', key)
}

/**
 * Takes a time that depends only on the length of `given`. Synchronous: Web Crypto digests run on another thread, and every request would wait for
 * one. An empty secret never matches.
 */
export function isSameSecret(given: string, secret: string): boolean {
  let difference = given.length ^ secret.length
  for (let i = 0; i < given.length; i++) difference |= given.charCodeAt(i) ^ secret.charCodeAt(i % secret.length)
  return difference === 0 && given !== ''
}

/** The SHA-256 of a text in hex: compares texts without sending or storing them. */
export async function hashText(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

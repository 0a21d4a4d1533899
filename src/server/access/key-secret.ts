/** The secret of a key: `mr_` and 256 random bits. The store has its SHA-256 and nothing else of it. */

/** Secret scanners find keys by it. */
export const keyPrefix = 'mr_'

export function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  const text = btoa(String.fromCharCode(...bytes))
  return keyPrefix + text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/u, '')
}

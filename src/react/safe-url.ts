/** Addresses that a text from a model or a tool may lead to. */

const schemes = new Set(['http:', 'https:', 'mailto:'])

/** The address in full, or nothing: no scripts, no files, no places on this server. */
export function safeUrl(given: string): string | undefined {
  const parsed = URL.parse(given.trim())
  return parsed !== null && schemes.has(parsed.protocol) ? parsed.href : undefined
}

/** A picture that is in the text itself. It loads nothing, and an `<img>` runs no scripts. */
export function isOwnImage(url: string): boolean {
  return /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/u.test(url)
}

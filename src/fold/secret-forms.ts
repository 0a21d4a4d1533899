/**
 * The forms in which secrets are searched for: verbatim, and encoded in JSON, URLs, base64 and hex. Pure; computed once per
 * server.
 */

/** What stands in place of a secret. */
export const redacted = '[redacted]'

/** Minimum length of a secret. Redacting shorter values would garble ordinary text. */
export const shortestSecret = 6

/** Minimum length of a line of a multi-line key. */
const shortestLine = 16

/** Skips secrets that are too short. */
export function formsOf(secrets: readonly string[]): string[] {
  const forms = new Set<string>()
  for (const secret of secrets) {
    if (secret.length < shortestSecret) continue
    for (const form of formsOfOne(secret)) forms.add(form)
    // Programs print multi-line keys line by line.
    const lines = secret.split(/\r?\n/u)
    if (lines.length > 1)
      for (const line of lines) if (line.length >= shortestLine && !line.startsWith('-----')) forms.add(line)
  }
  return [...forms]
}

function formsOfOne(secret: string): string[] {
  const json = inJson(secret)
  const bytes = new TextEncoder().encode(secret)
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'))
  // Without the flag `u`: JSON escapes each surrogate separately.
  const ascii = json.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const base64 = [0, 1, 2].flatMap((offset) => inBase64(bytes, offset))
  return [
    secret,
    // Tool arguments are JSON that may contain JSON.
    json,
    inJson(json),
    ascii,
    ...inUrl(secret),
    // Every byte percent-encoded, and hex.
    ...[`%${hex.join('%')}`, hex.join('')].flatMap((form) => [form, form.toUpperCase()]),
    ...base64,
    ...base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_')),
  ]
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** Percent-encoding as in `encodeURIComponent`, RFC 3986 and forms, each in upper and lower case. */
function inUrl(secret: string): string[] {
  const url = encodeURIComponent(secret.toWellFormed())
  const strict = url.replaceAll(/[!'()*]/gu, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  const form = new URLSearchParams({ s: secret.toWellFormed() }).toString().slice(2)
  const all = [url, strict, form]
  return [...all, ...all.map((each) => each.replaceAll(/%[\dA-F]{2}/gu, (code) => code.toLowerCase()))]
}

/**
 * The secret inside the base64 of a longer text, `offset` bytes (modulo 3) after its start: without the characters that also
 * encode bits of adjacent bytes. Also with the last characters, for a secret at the end of the text, with and without padding.
 */
function inBase64(bytes: Uint8Array, offset: number): string[] {
  const padded = new Uint8Array(offset + bytes.length)
  padded.set(bytes, offset)
  const text = toBase64(padded)
  const bare = text.replace(/=+$/u, '')
  const [begin, end] = [Math.ceil((offset * 8) / 6), Math.floor((padded.length * 8) / 6)]
  return [text.slice(begin), bare.slice(begin), bare.slice(begin, end)]
}

function toBase64(bytes: Uint8Array): string {
  let text = ''
  // Byte by byte: a long secret would exceed the maximum number of arguments.
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}

/**
 * The forms in which secrets are searched for: verbatim, and encoded in JSON, URLs, base64 and hex. Pure; computed once per
 * server.
 */

/** The text that replaces a secret. */
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

/*
 * Finds any number of secrets in chunks of text in one pass. Uses the Wu-Manber algorithm: the pair of characters at the end
 * of a window determines how far the search can skip.
 */

/** Scans from left to right. Unless `final`, stops where more text could complete a (longer) secret, and returns it as `rest`. */
export type Scan = (text: string, final: boolean) => { text: string; rest: string }

export interface Scanner {
  scan: Scan
  /** Whether `scan` would return this text as it is, without a rest. May return false for such a text: `scan` decides. */
  passes(text: string): boolean
}

/** Window size; no form is shorter. */
const window = shortestSecret

/** Creates a scanner that replaces every occurrence of a form with `replacement`. */
export function createScanner(forms: readonly string[], replacement: string): Scanner {
  /** Hash of the pair at the end of a window → shift; 0 if the window may be the start of a secret. */
  const shifts = new Uint8Array(1 << 16).fill(window - 1)
  /** First characters of all forms, for a text that ends with one. */
  const firsts = new Set<number>()
  /** First two characters → forms, longest first. */
  const candidates = new Map<number, string[]>()
  for (const form of forms.toSorted((a, b) => b.length - a.length)) {
    const [first, second] = [form.charCodeAt(0), form.charCodeAt(1)]
    firsts.add(first)
    candidates.set(pairOf(first, second), [...(candidates.get(pairOf(first, second)) ?? []), form])
    for (let end = 1; end < window; end++) {
      const place = placeOf(form.charCodeAt(end - 1), form.charCodeAt(end))
      shifts[place] = Math.min(shifts[place]!, window - 1 - end)
    }
  }

  // Nearly all deltas pass. Unlike `scan`, it allocates nothing.
  function passes(text: string): boolean {
    let i = 0
    while (i + window <= text.length) {
      const end = i + window - 1
      const shift = shifts[placeOf(text.charCodeAt(end - 1), text.charCodeAt(end))]!
      if (shift === 0) return false
      i += shift
    }
    for (; i < text.length; i++) {
      if (!firsts.has(text.charCodeAt(i))) continue
      if (i === text.length - 1 || candidates.has(pairOf(text.charCodeAt(i), text.charCodeAt(i + 1)))) return false
    }
    return true
  }

  const scan: Scan = (text, final) => {
    let out = ''
    let from = 0
    let i = 0
    /** The length of the secret at this position, `open` if more text decides, undefined if there is none. */
    const look = () => {
      const found = candidates.get(pairOf(text.charCodeAt(i), text.charCodeAt(i + 1)))
      return found && matchAt(text, i, found, final)
    }
    const stop = () => ({ text: out + text.slice(from, i), rest: text.slice(i) })

    while (i + window <= text.length) {
      const end = i + window - 1
      const shift = shifts[placeOf(text.charCodeAt(end - 1), text.charCodeAt(end))]!
      const match = shift === 0 ? look() : undefined
      if (match === 'open') return stop()
      if (match === undefined) i += shift || 1
      else {
        out += text.slice(from, i) + replacement
        i += match
        from = i
      }
    }
    // The rest is shorter than any secret, but may be the start of one.
    for (; !final && i < text.length; i++) {
      if (!firsts.has(text.charCodeAt(i))) continue
      if (i === text.length - 1 || look() === 'open') return stop()
    }
    return { text: from === 0 ? text : out + text.slice(from), rest: '' }
  }
  return { scan, passes }
}

function pairOf(first: number, second: number): number {
  return first * 0x1_00_00 + second
}

function placeOf(first: number, second: number): number {
  return ((first << 8) ^ second ^ (second >> 8)) & 0xff_ff
}

/** The length of the secret at this position; `open` if more text must decide. */
function matchAt(text: string, at: number, candidates: readonly string[], final: boolean): number | 'open' | undefined {
  for (const secret of candidates) {
    const end = Math.min(secret.length, text.length - at)
    let n = 2
    while (n < end && text.charCodeAt(at + n) === secret.charCodeAt(n)) n++
    if (n < end) continue
    if (n === secret.length) return n
    if (!final) return 'open'
  }
  return undefined
}

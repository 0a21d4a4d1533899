/** `data:` URLs of clients, with base64 or percent-encoded. Messages hold the form with base64, which every model package reads. */
import { toBase64 } from './entry.ts'
import type { FileContent } from './message.ts'

/** In the form with base64, or its fault. */
export type ReadDataUrl = { url: string; mediaType: string; base64: string } | { fault: string }

export function readDataUrl(given: string): ReadDataUrl {
  const comma = given.indexOf(',')
  const head = /^data:([^;,]*)((?:;[^;,]*)*)$/iu.exec(comma < 0 ? '' : given.slice(0, Math.min(comma, 1000)))
  if (head === null) return { fault: 'must be a data: URL such as data:text/plain;base64,….' }
  const mediaType = head[1]!.trim() || 'text/plain'
  if (!/^[\w.+*-]+\/[\w.+*-]+$/u.test(mediaType)) return { fault: 'must name a media type such as image/png.' }
  const said = given.slice(comma + 1)
  const isBase64 = /;\s*base64\s*$/iu.test(head[2]!)
  const base64 = isBase64 ? clean(said) : toBase64(percentDecoded(said))
  const fault = base64Fault(base64)
  return fault === undefined ? { url: `data:${mediaType};base64,${base64}`, mediaType, base64 } : { fault }
}

/** The fault of base64. Padding is optional, but must not be incomplete. */
export function base64Fault(text: string): string | undefined {
  const [, data = '', padding] = /^([A-Za-z0-9+/_-]+)(={0,2})$/u.exec(text) ?? []
  const rest = data.length % 4
  if (data !== '' && rest !== 1 && (padding === '' || rest + padding!.length === 4)) return undefined
  return text === '' ? 'is empty.' : 'is not valid base64.'
}

/** Some clients break the lines, or encode `+` and `=`. */
function clean(text: string): string {
  const plain = text.includes('%') ? new TextDecoder().decode(percentDecoded(text)) : text
  return plain.replaceAll(/\s+/gu, '')
}

/** Bytes, because the content need not be UTF-8. A `%` before anything but two hex digits is itself. */
function percentDecoded(text: string): Uint8Array {
  const written = new TextEncoder().encode(text)
  const bytes = new Uint8Array(written.length)
  let length = 0
  for (let i = 0; i < written.length; i++) {
    const pair = written[i] === 0x25 ? String.fromCharCode(...written.subarray(i + 1, i + 3)) : ''
    const isPair = /^[\da-f]{2}$/iu.test(pair)
    bytes[length++] = isPair ? Number.parseInt(pair, 16) : written[i]!
    if (isPair) i += 2
  }
  return bytes.subarray(0, length)
}

/** Where a file stands in the request that brought it, for a refusal that comes later. Not stored. */
const places = new WeakMap<FileContent, string>()

export function withPlace(file: FileContent, place: string): FileContent {
  places.set(file, place)
  return file
}

export function placeOf(file: FileContent): string | undefined {
  return places.get(file)
}

/** Reads the content of AG-UI messages: text, or parts with media. */
import { base64Fault } from '../../part/data-url.ts'
import { withPlace } from '../../part/file-place.ts'
import { parseJson } from '../../part/json.ts'
import type { FileContent, TextContent, ToolOutput } from '../../part/message.ts'
import { bad, toArray, toFields, toString, toUrl, type Fields } from '../ui/ui-parts.ts'

/** What a part without a media type is. */
const media: ReadonlyMap<unknown, string> = new Map([
  ['image', 'image/*'],
  ['audio', 'audio/*'],
  ['video', 'video/*'],
  ['document', 'application/octet-stream'],
])

type UserContent = string | (TextContent | FileContent)[]

export function toUserContent(value: unknown, place: string): UserContent {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) throw bad(place, 'must be a string or an array of parts.')
  if (value.length === 0) throw bad(place, 'is empty.')
  return withoutCopies(
    toArray(value, place).map((part, i) => toPart(toFields(part, `${place}[${i}]`), `${place}[${i}]`)),
  )
}

/** Clients in between versions send a file twice: as `binary`, and as the part that replaced it. */
function withoutCopies(parts: { isOld: boolean; content: TextContent | FileContent }[]): (TextContent | FileContent)[] {
  const known = new Set(parts.flatMap(({ isOld, content }) => (isOld ? [] : [JSON.stringify(content)])))
  return parts.flatMap(({ isOld, content }) => (isOld && known.has(JSON.stringify(content)) ? [] : [content]))
}

function toPart(part: Fields, place: string): { isOld: boolean; content: TextContent | FileContent } {
  const { type } = part
  if (type === 'text') return { isOld: false, content: { type, text: toString(part['text'], `${place}.text`) } }
  if (type === 'binary') return { isOld: true, content: withPlace(fromBinary(part, place), place) }
  const kind = media.get(type)
  if (kind === undefined) throw bad(`${place}.type`, `must be one of text, ${[...media.keys()].join(', ')}.`)
  const { filename } = toObject(part['metadata'])
  const file = { ...fromSource(part['source'], kind, `${place}.source`), ...named(filename) }
  return { isOld: false, content: withPlace(file, place) }
}

function fromSource(value: unknown, kind: string, place: string): FileContent {
  if (value === undefined) throw bad(place, 'is missing.')
  const source = toFields(value, place)
  const { type } = source
  const at = `${place}.value`
  const given = source['mimeType'] ?? undefined
  const mediaType = given === undefined ? kind : toMediaType(given, `${place}.mimeType`)
  switch (type) {
    case 'data':
      if (given === undefined) throw bad(`${place}.mimeType`, 'is missing.')
      return { type: 'file', mediaType, data: toData(source['value'], at) }
    case 'url':
      return { type: 'file', mediaType, data: toUrl(source['value'], at) }
    case 'file':
      // Some providers name their files by URL.
      if (/^https:\/\//iu.test(toString(source['value'], at)))
        return { type: 'file', mediaType, data: source['value'] as string }
      throw bad(place, 'names a file that is kept by a provider, which is not supported: send the file as data or url.')
    default:
      throw bad(`${place}.type`, 'must be data, url or file.')
  }
}

/** A file of a client older than 1.0. */
function fromBinary(part: Fields, place: string): FileContent {
  const mediaType = toMediaType(part['mimeType'], `${place}.mimeType`)
  const { filename, data, url } = part
  if (typeof data === 'string' && data !== '') {
    return { type: 'file', mediaType, data: toData(data, `${place}.data`), ...named(filename) }
  }
  if (typeof url === 'string' && url !== '') {
    return { type: 'file', mediaType, data: toUrl(url, `${place}.url`), ...named(filename) }
  }
  throw bad(place, 'has neither data nor url: a file that only has an id is not supported.')
}

function toMediaType(value: unknown, place: string): string {
  const type = toString(value, place)
  if (/^[\w.+-]{1,100}\/[\w.+*-]{1,100}(?:\s*;.{0,200})?$/u.test(type)) return type
  throw bad(place, 'must be a media type such as image/png.')
}

function toData(value: unknown, place: string): string {
  const data = toString(value, place)
  if (/^data:/iu.test(data)) return toUrl(data, place)
  const fault = base64Fault(data)
  if (fault !== undefined) throw bad(place, fault)
  return data
}

function named(filename: unknown): { filename?: string } {
  return typeof filename === 'string' && filename !== '' ? { filename } : {}
}

function toObject(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

/** What a tool returned. Parts become one text if they are text only. */
export function toResultOutput(value: unknown, place: string): Extract<ToolOutput, { type: 'text' | 'json' }> {
  if (typeof value === 'string') return readOutput(value)
  const parts = toArray(value, place).map((part, i) => toFields(part, `${place}[${i}]`))
  const texts = parts.map((part, i) =>
    part['type'] === 'text' ? toString(part['text'], `${place}[${i}].text`) : undefined,
  )
  if (texts.every((text) => text !== undefined)) return readOutput(texts.join(''))
  return { type: 'json', value: parts }
}

function readOutput(text: string): Extract<ToolOutput, { type: 'text' | 'json' }> {
  try {
    const value = parseJson(text)
    return typeof value === 'string' ? { type: 'text', value } : { type: 'json', value }
  } catch {
    return { type: 'text', value: text }
  }
}

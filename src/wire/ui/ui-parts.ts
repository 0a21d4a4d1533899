/** Reads the parts of UI messages and model messages. The input is untrusted: every field is checked, and errors name its place. */
import { base64Fault, readDataUrl, withPlace } from '../../part/data-url.ts'
import { MillraceError } from '../../part/error.ts'
import type { FileContent, ProviderOptions, ReasoningContent, TextContent } from '../../part/message.ts'

export type Fields = Record<string, unknown>

export function bad(place: string, cure: string): MillraceError {
  return new MillraceError('bad-input', `${place} ${cure}`, { status: 400 })
}

export function toFields(value: unknown, place: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw bad(place, 'must be an object.')
}

export function toString(value: unknown, place: string): string {
  if (typeof value === 'string') return value
  throw bad(place, 'must be a string.')
}

export function toArray(value: unknown, place: string): unknown[] {
  if (Array.isArray(value)) return value
  throw bad(place, 'must be an array.')
}

/** Provider metadata (UI) or provider options (model messages) as our `providerOptions`. */
export function toOptions(metadata: unknown): { providerOptions?: ProviderOptions } {
  return typeof metadata === 'object' && metadata !== null ? { providerOptions: metadata as ProviderOptions } : {}
}

/** Reads `text`, `reasoning`, `file` and `image` parts, which are alike in both formats. Undefined for other types. */
export function toContent(part: Fields, place: string): TextContent | ReasoningContent | FileContent | undefined {
  const options = toOptions(part['providerMetadata'] ?? part['providerOptions'])
  switch (part['type']) {
    case 'reasoning':
      if (part['text'] === undefined) return toOldReasoning(part, place)
      return { type: part['type'], text: toString(part['text'], `${place}.text`), ...options }
    case 'text':
      return { type: part['type'], text: toString(part['text'], `${place}.text`), ...options }
    case 'file': {
      // Version 4 stored `mimeType`.
      const mediaType = toString(part['mediaType'] ?? part['mimeType'], `${place}.mediaType`)
      const { filename } = part
      const named = typeof filename === 'string' ? { filename } : {}
      return withPlace({ type: 'file', mediaType, data: toData(part, place), ...named, ...options }, place)
    }
    case 'image':
      return withPlace(
        { type: 'file', mediaType: 'image/*', data: toFileData(part['image'], `${place}.image`), ...options },
        place,
      )
    default:
      return undefined
  }
}

/** As version 4 of the AI SDK stored it: `reasoning`, and `details` with Anthropic's signature. */
function toOldReasoning(part: Fields, place: string): ReasoningContent {
  const { details, reasoning } = part
  const list = Array.isArray(details) ? (details as unknown[]).map((each) => toFields(each, `${place}.details`)) : []
  const signature = list.map((each) => each['signature']).findLast((each) => typeof each === 'string')
  const said = list.map(({ text }) => (typeof text === 'string' ? text : '')).join('')
  const text = reasoning === undefined && said !== '' ? said : toString(reasoning, `${place}.text`)
  return { type: 'reasoning', text, ...toOptions(signature === undefined ? undefined : { anthropic: { signature } }) }
}

/** UI: `url`. Model message: `data` as base64, a URL, or the tagged `{type, data | url}` of version 7. */
function toData(part: Fields, place: string): string {
  if (part['url'] !== undefined) return toUrl(part['url'], `${place}.url`)
  const { data } = part
  if (typeof data !== 'object' || data === null) return toFileData(data, `${place}.data`)
  const tagged = data as Fields
  return tagged['type'] === 'url'
    ? toUrl(tagged['url'], `${place}.data.url`)
    : toFileData(tagged['data'], `${place}.data.data`)
}

/** Base64 or a URL. */
function toFileData(value: unknown, place: string): string {
  const data = toString(value, place)
  if (/^(?:data:|https?:\/\/)/iu.test(data)) return toUrl(data, place)
  const fault = base64Fault(data)
  if (fault !== undefined) throw bad(place, fault)
  return data
}

/** A `data:` URL in the form with base64. */
export function toUrl(value: unknown, place: string): string {
  const url = toString(value, place)
  if (/^https?:\/\//iu.test(url)) return url
  if (/^data:/iu.test(url)) {
    const read = readDataUrl(url)
    if ('fault' in read) throw bad(place, read.fault)
    return read.url
  }
  throw bad(place, 'must be a data: or http(s) URL; a blob: URL works only inside its page.')
}

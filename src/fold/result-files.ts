/**
 * Pictures, sounds and documents in the results of tools, as MCP servers and custom tools return them. What is not a file is the text of the result,
 * with a mark in place of each file.
 */
export interface ResultFile {
  mediaType: string
  /** Base64, or a URL. */
  data: string
  isUrl: boolean
  filename?: string | undefined
}

/** Undefined for a result without files and resources. */
export function readResultFiles(value: unknown): { text: string; files: ResultFile[] } | undefined {
  // Most results have none: they are not copied.
  if (!hasBlock(value)) return undefined
  const files: ResultFile[] = []
  const state = { files }
  const list = blocksIn(value)
  const text =
    list === undefined ? toText(walk(value, state)) : list.map((each) => toText(walk(each, state))).join('\n')
  return { text, files }
}

function hasBlock(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasBlock)
  const fields = value as Fields
  if (typeof fields['type'] === 'string' && readBlock(fields) !== undefined) return true
  for (const key in fields) if (hasBlock(fields[key])) return true
  return false
}

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
}

/** The content blocks of a result that is a list of them, or the result of an MCP call. */
function blocksIn(value: unknown): readonly unknown[] | undefined {
  const list = Array.isArray(value) ? (value as unknown[]) : onlyContent(value)
  return list?.every((each) => typeof fieldsOf(each)?.['type'] === 'string') ? list : undefined
}

function onlyContent(value: unknown): readonly unknown[] | undefined {
  const { content, ...rest } = fieldsOf(value) ?? {}
  const isBare = Object.keys(rest).every((key) => key === 'isError' || key === '_meta')
  return isBare && Array.isArray(content) ? (content as unknown[]) : undefined
}

interface WalkState {
  files: ResultFile[]
}

/** The value with marks in place of files. */
function walk(value: unknown, state: WalkState): unknown {
  if (Array.isArray(value)) return value.map((each) => walk(each, state))
  const fields = fieldsOf(value)
  if (fields === undefined) return value
  const block = readBlock(fields)
  if (block === undefined)
    return Object.fromEntries(Object.entries(fields).map(([key, each]) => [key, walk(each, state)]))
  if (typeof block === 'string') return block
  state.files.push(block)
  return markOf(block, state.files)
}

function toText(value: unknown): string {
  if (typeof value === 'string') return value
  const { type, text, ...rest } = fieldsOf(value) ?? {}
  const isText = type === 'text' && typeof text === 'string'
  // MCP's text blocks may have notes for clients.
  const isBare = Object.keys(rest).every((key) => ['annotations', '_meta', 'providerOptions'].includes(key))
  return isText && isBare ? text : (JSON.stringify(value) ?? '')
}

/** What stands in the text in place of a file. */
export function markOf(file: ResultFile, files: readonly ResultFile[]): string {
  const { mediaType, data, isUrl, filename } = file
  const size = isUrl ? data : `${Math.ceil((data.length * 3) / 4 / 1024)} KB`
  return `[file ${files.indexOf(file) + 1}: ${[filename, mediaType, size].filter((each) => each !== undefined).join(', ')}]`
}

type Fields = Record<string, unknown>

/** A file, or the text of a resource; undefined for any other object. */
export function readBlock(fields: Fields): ResultFile | string | undefined {
  switch (fields['type']) {
    case 'image':
    case 'audio':
    case 'file':
    case 'media':
    case 'image-data':
    case 'file-data': {
      const source = fieldsOf(fields['source'])
      if (source !== undefined)
        return toFound(source['data'] ?? source['url'], source['media_type'] ?? fallback(fields))
      const mediaType = fields['mediaType'] ?? fields['mimeType'] ?? fallback(fields)
      return toFound(
        fields['data'] ?? fields['url'] ?? fields['image'],
        mediaType,
        fields['filename'] ?? fields['name'],
      )
    }
    case 'image_url': {
      const url = fieldsOf(fields['image_url'])?.['url'] ?? fields['image_url']
      return toFound(url, 'image/*')
    }
    case 'resource':
      return readResource(fieldsOf(fields['resource']))
    case 'resource_link': {
      const { name, title, mimeType, uri, description } = fields
      if (typeof uri !== 'string') return undefined
      return `[${[title ?? name, mimeType, uri, description].filter((each) => typeof each === 'string').join(', ')}]`
    }
    default:
      return undefined
  }
}

function fallback({ type }: Fields): string | undefined {
  return type === 'image' || type === 'image-data' ? 'image/png' : undefined
}

function readResource(resource: Fields | undefined): ResultFile | string | undefined {
  const { uri, text, blob, mimeType } = resource ?? {}
  if (typeof text === 'string') return text
  if (typeof blob !== 'string') return undefined
  const mediaType = typeof mimeType === 'string' ? mimeType : 'application/octet-stream'
  if (/^text\/|[/+](?:json|xml|yaml)\b/u.test(mediaType)) return decode(blob) ?? toFound(blob, mediaType, uri)
  return toFound(blob, mediaType, uri)
}

function decode(base64: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function toFound(data: unknown, mediaType: unknown, filename?: unknown): ResultFile | undefined {
  if (typeof data !== 'string' || data === '') return undefined
  const name = typeof filename === 'string' ? filename : undefined
  const inline = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^,;]*)*;base64,/u.exec(data.slice(0, 200))
  if (inline !== null)
    return { mediaType: inline[1]!, data: data.slice(inline[0].length), isUrl: false, filename: name }
  if (typeof mediaType !== 'string' || !mediaType.includes('/')) return undefined
  const named = mediaType.toLowerCase().split(';')[0]!.trim()
  const type = named === 'image/jpg' ? 'image/jpeg' : named
  if (/^https?:\/\//u.test(data)) {
    return URL.canParse(data) ? { mediaType: type, data, isUrl: true, filename: name } : undefined
  }
  // A prefix is enough to distinguish base64 from words.
  return /^[\w+/=-]+$/u.test(data.slice(0, 1000)) ? { mediaType: type, data, isUrl: false, filename: name } : undefined
}

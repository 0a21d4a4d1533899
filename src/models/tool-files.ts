/**
 * Pictures, sounds and documents in the results of tools, as MCP servers and custom tools return them. A model gets them as files, never as base64
 * in a text: a picture of 1 MB would be a million meaningless characters.
 *
 * | in a result | to the model |
 * | --- | --- |
 * | `{ type: 'image' \| 'audio', data, mimeType }` (MCP), `{ type: 'file', data, mediaType }`, a picture of OpenAI's or Anthropic's form | a file |
 * | `{ type: 'resource', resource }` with text, with bytes | its text; a file |
 * | `{ type: 'resource_link' }` | a line with its name, type and address |
 * | all else | text, with a mark in place of each file |
 *
 * If a protocol does not support files in a tool's result, the file is sent in a user message after the results. A file that a protocol does not
 * support becomes a short note.
 */
import type { LanguageModelV4FilePart, LanguageModelV4Message, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider'
import { fieldsOf } from './decode/fields.ts'
import type { EndpointProtocol } from './providers.ts'

type Prompt = LanguageModelV4Message[]
type Output = LanguageModelV4ToolResultOutput
type Content = Extract<Output, { type: 'content' }>

interface File {
  mediaType: string
  /** Base64, or a URL. */
  data: string
  isUrl: boolean
  filename?: string | undefined
}

interface ExtractedFiles {
  text: string
  files: File[]
}

/** Converts the results of tools to the form of this protocol. */
export function placeToolFiles(prompt: Prompt, protocol: EndpointProtocol): Prompt {
  let isChanged = false
  const placed = prompt.flatMap((message): Prompt => {
    if (message.role !== 'tool') return [message]
    const behind: UserContent = []
    const content = message.content.map((part) => {
      if (part.type !== 'tool-result') return part
      const found = readOutput(part.output)
      if (found === undefined) return part
      isChanged = true
      const { output, rest } = place(found, protocol)
      if (rest.length > 0)
        behind.push({ type: 'text', text: `Files that the tool ${part.toolName} returned:` }, ...rest)
      return { ...part, output }
    })
    const placed = { ...message, content }
    return behind.length === 0 ? [placed] : [placed, { role: 'user', content: behind }]
  })
  return isChanged ? placed : prompt
}

type UserContent = Extract<LanguageModelV4Message, { role: 'user' }>['content']

function place(
  { text, files }: ExtractedFiles,
  protocol: EndpointProtocol,
): { output: Output; rest: LanguageModelV4FilePart[] } {
  const taken = files.filter((file) => takes(protocol, file))
  const lost = files.filter((file) => !takes(protocol, file))
  const notes = lost.map((file) => `${markOf(file, files)} is left out: this model does not take it.`)
  const said = [text, ...notes].filter((each) => each !== '').join('\n')
  if (taken.length === 0) return { output: { type: 'text', value: said }, rest: [] }
  const parts = taken.map(toFile)
  if (protocol === 'openai-chat') return { output: { type: 'text', value: said }, rest: parts }
  const value: Content['value'] = [{ type: 'text', text: said }, ...parts]
  return { output: { type: 'content', value }, rest: [] }
}

function toFile({ mediaType, data, isUrl, filename }: File): LanguageModelV4FilePart {
  const source = isUrl ? { type: 'url' as const, url: new URL(data) } : { type: 'data' as const, data }
  return { type: 'file', mediaType, data: source, ...(filename === undefined ? undefined : { filename }) }
}

/** The types that the servers accept, and the packages convert: in a tool's result, or in a message of the user. */
const taken: Record<EndpointProtocol, RegExp> = {
  anthropic: /^(?:image\/(?:png|jpeg|gif|webp)|application\/pdf)$/u,
  google: /^(?:image|audio|video)\/|^application\/pdf$/u,
  'openai-responses': /^(?:image\/(?:png|jpeg|gif|webp)|application\/pdf)$/u,
  'openai-chat': /^(?:image\/|audio\/(?:wav|x-wav|mp3|mpeg)$|application\/pdf$)/u,
}

function takes(protocol: EndpointProtocol, { mediaType, isUrl }: File): boolean {
  if (isUrl) return protocol !== 'google' && mediaType.startsWith('image/')
  return taken[protocol].test(mediaType)
}

/** For a model of another package: its provider determines the accepted types; all others accept files in a message of the user. */
export function protocolOf(provider: string): EndpointProtocol {
  if (/^anthropic\b|\.anthropic\b/u.test(provider)) return 'anthropic'
  if (/^(?:google|vertex)\b/u.test(provider)) return 'google'
  return provider.endsWith('.responses') ? 'openai-responses' : 'openai-chat'
}

/** Undefined for a result without files and resources: it stays unchanged. */
function readOutput(output: Output): ExtractedFiles | undefined {
  if (output.type !== 'json' && output.type !== 'error-json') return undefined
  const files: File[] = []
  const state = { files, hasBlocks: false }
  const value: unknown = output.value
  const list = blocksIn(value)
  const text =
    list === undefined ? toText(walk(value, state)) : list.map((each) => toText(walk(each, state))).join('\n')
  if (!state.hasBlocks) return undefined
  return { text: output.type === 'error-json' ? `The tool failed: ${text}` : text, files }
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
  files: File[]
  hasBlocks: boolean
}

/** The value with marks in place of files. */
function walk(value: unknown, state: WalkState): unknown {
  if (Array.isArray(value)) return value.map((each) => walk(each, state))
  const fields = fieldsOf(value)
  if (fields === undefined) return value
  const block = readBlock(fields)
  if (block === undefined)
    return Object.fromEntries(Object.entries(fields).map(([key, each]) => [key, walk(each, state)]))
  state.hasBlocks = true
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

function markOf(file: File, files: readonly File[]): string {
  const { mediaType, data, isUrl, filename } = file
  const size = isUrl ? data : `${Math.ceil((data.length * 3) / 4 / 1024)} KB`
  return `[file ${files.indexOf(file) + 1}: ${[filename, mediaType, size].filter((each) => each !== undefined).join(', ')}]`
}

type Fields = Record<string, unknown>

/** A file, or the text of a resource; undefined for any other object. */
function readBlock(fields: Fields): File | string | undefined {
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

function readResource(resource: Fields | undefined): File | string | undefined {
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

function toFound(data: unknown, mediaType: unknown, filename?: unknown): File | undefined {
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

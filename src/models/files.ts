/**
 * Adapts the files of a conversation to its model. Text files are sent as text where the server does not accept such a file. A file that the model
 * cannot read is refused in its own turn. In later turns it is replaced by words: it must not end the conversation.
 */
import { readDataUrl, placeOf } from '../part/data-url.ts'
import { MillraceError } from '../part/error.ts'
import type { FileContent, Message, TextContent } from '../part/message.ts'
import type { NamedModel } from './model-error.ts'
import type { EndpointProtocol } from './providers.ts'

export interface FileRules {
  /** Whether the servers accept a type inline. Undefined: any, as with a model of another package. */
  takes?: ((mediaType: string) => boolean) | undefined
  fetches(mediaType: string, url: string): boolean
  /** Replaces all files of earlier turns by words: the server has refused one of them. */
  bare?: boolean
}

/** The types that the servers of a protocol accept inline. Google's accept more with each model: anything but text may be tried. */
export function takesOf(protocol: EndpointProtocol): (mediaType: string) => boolean {
  const patterns: Record<EndpointProtocol, RegExp> = {
    'openai-chat': /^(?:(?:image|video)\/(?!svg)|audio\/(?:wav|mp3|mpeg)$|application\/pdf$)/u,
    'openai-responses': /^(?:image\/(?!svg)|application\/pdf$)/u,
    anthropic: /^(?:image\/(?!svg)|application\/pdf$|text\/plain$)/u,
    google: /^(?!image\/svg)/u,
  }
  return (mediaType) =>
    patterns[protocol].test(mediaType) &&
    !(protocol === 'google' && mediaType.startsWith('application/') && isTextType(mediaType))
}

/** Throws `bad-input` for a file of this turn that the model cannot take. */
export function withTakenFiles(messages: readonly Message[], model: NamedModel, rules: FileRules): Message[] {
  const last = lastOfUser(messages)
  return messages.map((message, i): Message => {
    if (message.role !== 'user' || typeof message.content === 'string') return message
    const isOld = i < last
    return {
      ...message,
      content: message.content.map((part) => (part.type === 'file' ? taken(part, isOld, model, rules) : part)),
    }
  })
}

export function hasFiles(messages: readonly Message[], which: 'any' | 'old' = 'any'): boolean {
  const last = lastOfUser(messages)
  return messages.some(
    ({ role, content }, i) =>
      role === 'user' &&
      typeof content !== 'string' &&
      (which === 'any' || i < last) &&
      content.some(({ type }) => type === 'file'),
  )
}

/** Clients send a refused message again, before the next one: then it belongs to an earlier turn. */
function lastOfUser(messages: readonly Message[]): number {
  return messages.findLastIndex(({ role }) => role === 'user')
}

function taken(file: FileContent, isOld: boolean, model: NamedModel, rules: FileRules): FileContent | TextContent {
  const said = (text: string): TextContent => ({ type: 'text', text })
  const words = (why: string) => said(`[The user sent the file ${described(file)} here. ${why}]`)
  if (isOld && rules.bare) return words('The model cannot read it.')
  const { mediaType, base64 } = inline(file)
  if (base64 === undefined) {
    if (rules.fetches(mediaType, file.data)) return file
    if (isOld) return words('The model cannot fetch it.')
    throw refused(file, model, 'does not fetch such files by URL. Send the file as a data: URL.')
  }
  if (rules.takes === undefined || rules.takes(mediaType)) return file
  const text = isTextType(mediaType) || isTextName(file) ? textIn(base64) : undefined
  if (text !== undefined) {
    const name = file.filename === undefined ? '' : ` name=${JSON.stringify(file.filename)}`
    return said(`<file${name} type="${mediaType}">\n${text}\n</file>`)
  }
  if (isOld) return words('The model cannot read it.')
  throw refused(file, model, 'takes no file of this type. Send an image, a PDF or text.')
}

function refused(file: FileContent, { provider, modelId }: NamedModel, why: string): MillraceError {
  const place = placeOf(file)
  const what =
    place === undefined ? `The file ${described(file)} cannot be sent` : `${place} is a file ${described(file)}`
  const model = `${provider.split('.')[0]}:${modelId}`
  return new MillraceError('bad-input', `${what}: the model ${model} ${why}`, { status: 400 })
}

/** `"report.zip" (application/zip, 12.3 kB)` */
function described(file: FileContent): string {
  const { mediaType, base64 } = inline(file)
  const size = base64 === undefined ? [] : [sizeOf(Math.floor((base64.replace(/=+$/u, '').length * 3) / 4))]
  const name = file.filename === undefined ? '' : `${JSON.stringify(file.filename.slice(0, 200))} `
  return `${name}(${[mediaType, ...size].join(', ')})`
}

function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}

/** Without `base64` it is a URL. A `data:` URL's type takes precedence over the part's, as in the model packages. */
function inline({ mediaType: said, data, filename }: FileContent): { mediaType: string; base64?: string } {
  const mediaType = said.split(';')[0]!.trim().toLowerCase()
  if (/^https?:\/\//iu.test(data)) return { mediaType }
  const read = /^data:/iu.test(data) ? readDataUrl(data) : undefined
  const base64 = read === undefined || 'fault' in read ? data.slice(data.indexOf(',') + 1) : read.base64
  const own = read === undefined || 'fault' in read ? mediaType : read.mediaType.toLowerCase()
  const isPdf = base64.startsWith('JVBERi0') || /\.pdf$/iu.test(filename ?? '')
  return { mediaType: own === 'application/octet-stream' && isPdf ? 'application/pdf' : own, base64 }
}

const textTypes = new Set(
  (
    'json,xml,yaml,x-yaml,toml,sql,graphql,javascript,x-javascript,ecmascript,typescript,x-typescript,x-sh,x-shellscript,x-httpd-php,' +
    'ndjson,x-ndjson,jsonl,jsonlines,csv,x-python,x-python-code,x-ruby,x-perl,x-tex,x-latex,rtf,markdown,x-www-form-urlencoded'
  ).split(','),
)

function isTextType(mediaType: string): boolean {
  const [top, sub = ''] = mediaType.split('/')
  return top === 'text' || /\+(?:json|xml|yaml)$/u.test(sub) || (top === 'application' && textTypes.has(sub))
}

const textNames =
  /\.(?:txt|csv|tsv|json|jsonl|ndjson|xml|ya?ml|toml|ini|conf|env|md|markdown|rst|html?|css|scss|[cm]?[jt]sx?|py|rb|rs|go|java|kt|swift|c|h|cc|cpp|hpp|cs|php|sh|bash|zsh|sql|graphql|lua|pl|r|scala|vue|svelte|tex|log|diff|patch|svg)$/iu

/** Browsers have no type for most code. */
function isTextName({ filename = '', mediaType }: FileContent): boolean {
  return textNames.test(filename) && !/^(?:image\/(?!svg)|audio\/)/u.test(mediaType)
}

/** Undefined for binary data. */
function textIn(base64: string): string | undefined {
  let bytes: Uint8Array
  try {
    const binary = atob(base64.replaceAll('-', '+').replaceAll('_', '/'))
    bytes = Uint8Array.from(binary, (sign) => sign.charCodeAt(0))
  } catch {
    return undefined
  }
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return new TextDecoder('windows-1252').decode(bytes)
  }
}

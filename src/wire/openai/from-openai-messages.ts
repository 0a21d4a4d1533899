/**
 * Converts the messages of an OpenAI request to a conversation. The input is untrusted: every field is checked, and errors name
 * its place. Names and ids are used only as Map keys, so they cannot reach a prototype.
 */
import { base64Fault, readDataUrl, withPlace } from '../../part/data-url.ts'
import { MillraceError } from '../../part/error.ts'
import { fromOpenAiCallId } from '../../part/openai-call-id.ts'
import type {
  AssistantContent,
  FileContent,
  Message,
  TextContent,
  ToolCallContent,
  ToolResultContent,
} from '../../part/message.ts'
import { parseInput } from '../../fold/tool-loop.ts'
import { toArray, toFields, toString, type Fields } from '../ui/ui-parts.ts'

/** An invalid or unsupported field of the request. `param` is its place, as in OpenAI's errors. */
export class BadParameter extends MillraceError {
  readonly param: string

  constructor(param: string, cure: string) {
    super('bad-input', `${param} ${cure}`, { status: 400 })
    this.param = param
  }
}

/** Calls of the last assistant message without a result, by their ids in the log. */
type OpenCalls = Map<string, { sentId: string; toolName: string }>

const roles = ['system', 'developer', 'user', 'assistant', 'tool']
const maxMessages = 10_000

/**
 * `developer` is treated as `system`, `reasoning_content` of an assistant is kept, and consecutive tool results become one
 * message. At most 10,000 messages. Throws {@link BadParameter} for input that models cannot handle: a call without a
 * result, a result without a call, an unknown role or content type.
 */
export function fromOpenAiMessages(value: unknown): Message[] {
  if (!Array.isArray(value)) throw new BadParameter('messages', 'must be an array of {role, content}.')
  if (value.length === 0) throw new BadParameter('messages', 'is empty; it needs at least one message.')
  if (value.length > maxMessages) {
    throw new BadParameter('messages', `has ${value.length} entries; at most ${maxMessages} are allowed.`)
  }
  const messages: Message[] = []
  const open: OpenCalls = new Map()
  const settled = (place: string, verb: string) => {
    const [call] = open.values()
    if (call === undefined) return
    const cure = 'a tool message with that tool_call_id must follow the assistant message that made the call.'
    throw new BadParameter(
      place,
      `${verb} before the result of tool call ${JSON.stringify(call.sentId.slice(0, 100))}: ${cure}`,
    )
  }
  for (const [i, item] of value.entries()) {
    const place = `messages[${i}]`
    try {
      const message = toFields(item, place)
      const { role } = message
      if (role !== 'tool') settled(place, 'comes')
      switch (role) {
        case 'system':
        case 'developer':
          messages.push({ role: 'system', content: toWords(message['content'], `${place}.content`) })
          break
        case 'user':
          messages.push({ role, content: toUserContent(message['content'], `${place}.content`) })
          break
        case 'assistant': {
          const content = toAssistantContent(message, place, open)
          if (content.length > 0) messages.push({ role, content })
          break
        }
        case 'tool': {
          const result = toResult(message, place, open)
          const last = messages.at(-1)
          if (last?.role === 'tool') last.content.push(result)
          else messages.push({ role, content: [result] })
          break
        }
        case 'function':
          throw new BadParameter(
            `${place}.role`,
            'is "function", which is not supported: use tools and the role "tool".',
          )
        default:
          throw new BadParameter(`${place}.role`, `must be one of ${roles.join(', ')}.`)
      }
    } catch (error) {
      if (!(error instanceof MillraceError) || error instanceof BadParameter) throw error
      throw new BadParameter(...splitPlace(error.message))
    }
  }
  settled('messages', 'ends')
  if (messages.length === 0) throw new BadParameter('messages', 'has no content.')
  return messages
}

/** Splits `place cure…`, the format of the field readers. */
export function splitPlace(message: string): [string, string] {
  const at = message.indexOf(' ')
  return [message.slice(0, at), message.slice(at + 1)]
}

/** A string, or text parts. */
function toWords(value: unknown, place: string): string {
  if (typeof value === 'string') return value
  const parts = toParts(value, place)
  return parts
    .map((part, i) => {
      if (part['type'] !== 'text') throw new BadParameter(`${place}[${i}].type`, 'must be text here.')
      return toString(part['text'], `${place}[${i}].text`)
    })
    .join('')
}

function toParts(value: unknown, place: string): Fields[] {
  if (!Array.isArray(value)) throw new BadParameter(place, 'must be a string or an array of content parts.')
  return toArray(value, place).map((part, i) => toFields(part, `${place}[${i}]`))
}

function toUserContent(value: unknown, place: string): string | (TextContent | FileContent)[] {
  if (typeof value === 'string') return value
  const parts = toParts(value, place)
  if (parts.length === 0) throw new BadParameter(place, 'is empty.')
  return parts.map((part, i) => toUserPart(part, `${place}[${i}]`))
}

function toUserPart(part: Fields, place: string): TextContent | FileContent {
  const { type } = part
  switch (type) {
    case 'text':
      return { type, text: toString(part['text'], `${place}.text`) }
    case 'image_url': {
      const image = part[type]
      const at = `${place}.image_url.url`
      // Some clients send the URL itself instead of {url, detail}.
      const url = typeof image === 'string' ? image : toString(toFields(image, `${place}.image_url`)['url'], at)
      return toFile(url, at, 'image/*')
    }
    case 'input_audio': {
      const audio = toFields(part[type], `${place}.input_audio`)
      const format = toString(audio['format'], `${place}.input_audio.format`)
      if (!/^\w{1,10}$/u.test(format)) throw new BadParameter(`${place}.input_audio.format`, 'must be wav or mp3.')
      const mediaType = format === 'mp3' ? 'audio/mpeg' : `audio/${format}`
      const at = `${place}.input_audio.data`
      return withPlace({ type: 'file', mediaType, data: toBase64(toString(audio['data'], at), at) }, at)
    }
    case 'file': {
      const file = toFields(part[type], `${place}.file`)
      const at = `${place}.file.file_data`
      if (file['file_data'] === undefined) {
        throw new BadParameter(at, 'is missing: send the file as a data: URL; uploaded files are not supported.')
      }
      const made = toFile(toString(file['file_data'], at), at, 'application/octet-stream')
      return typeof file['filename'] === 'string' ? withPlace({ ...made, filename: file['filename'] }, at) : made
    }
    default:
      throw new BadParameter(`${place}.type`, 'must be text, image_url, input_audio or file.')
  }
}

/** With the media type of the data: URL, or `otherwise` for an http(s) URL. */
export function toFile(url: string, place: string, otherwise: string): FileContent {
  if (/^https?:\/\//iu.test(url)) return withPlace({ type: 'file', mediaType: otherwise, data: url }, place)
  if (!/^data:/iu.test(url)) throw new BadParameter(place, 'must be an http(s) URL or a data: URL.')
  const read = readDataUrl(url)
  if ('fault' in read) throw new BadParameter(place, read.fault)
  return withPlace({ type: 'file', mediaType: read.mediaType, data: read.base64 }, place)
}

function toBase64(text: string, place: string): string {
  const fault = base64Fault(text)
  if (fault !== undefined) throw new BadParameter(place, fault)
  return text
}

/** The id or name of a call. */
export function toName(value: unknown, place: string): string {
  const name = toString(value, place)
  if (name !== '' && name.length <= 256) return name
  throw new BadParameter(place, 'must have 1 to 256 characters.')
}

function toAssistantContent(message: Fields, place: string, open: OpenCalls): AssistantContent[] {
  const content: AssistantContent[] = []
  const { reasoning_content: reasoning, content: said, tool_calls: calls, refusal } = message
  if (typeof reasoning === 'string' && reasoning !== '') content.push({ type: 'reasoning', text: reasoning })
  const text = typeof said === 'string' ? said : said == null ? '' : fromAssistantParts(said, `${place}.content`)
  if (text !== '') content.push({ type: 'text', text })
  if (typeof refusal === 'string' && refusal !== '') content.push({ type: 'text', text: refusal })
  if (calls === undefined || calls === null) {
    if (said === undefined || said === null) {
      if (typeof refusal !== 'string') throw new BadParameter(place, 'has neither content nor tool_calls.')
    }
    return content
  }
  for (const [i, item] of toArray(calls, `${place}.tool_calls`).entries()) {
    const at = `${place}.tool_calls[${i}]`
    const call = toFields(item, at)
    const made = toFields(call['function'], `${at}.function`)
    const sentId = toName(call['id'], `${at}.id`)
    const toolCallId = fromOpenAiCallId(sentId)
    const toolName = toName(made['name'], `${at}.function.name`)
    const json = made['arguments'] === undefined ? '' : toString(made['arguments'], `${at}.function.arguments`)
    if (open.has(toolCallId)) throw new BadParameter(`${at}.id`, 'is also the id of another call in the same message.')
    open.set(toolCallId, { sentId, toolName })
    content.push({
      type: 'tool-call',
      toolCallId,
      toolName,
      input: parseInput(json),
      ...toSigned(call['extra_content']),
    })
  }
  return content
}

/** Gemini's signature, as its own endpoint for OpenAI clients has it. */
function toSigned(extra: unknown): Pick<ToolCallContent, 'providerOptions'> {
  const { google } = (typeof extra === 'object' ? (extra ?? {}) : {}) as { google?: { thought_signature?: unknown } }
  const signature = google?.thought_signature
  if (typeof signature !== 'string' || signature === '') return {}
  return { providerOptions: { google: { thoughtSignature: signature } } }
}

function fromAssistantParts(value: unknown, place: string): string {
  return toParts(value, place)
    .map((part, i) => {
      const { type } = part
      if (type === 'text' || type === 'refusal') return toString(part[type], `${place}[${i}].${type}`)
      throw new BadParameter(`${place}[${i}].type`, 'must be text or refusal in an assistant message.')
    })
    .join('')
}

function toResult(message: Fields, place: string, open: OpenCalls): ToolResultContent {
  const toolCallId = fromOpenAiCallId(toString(message['tool_call_id'], `${place}.tool_call_id`))
  const call = open.get(toolCallId)
  if (call === undefined) {
    throw new BadParameter(`${place}.tool_call_id`, 'does not match an open call of the preceding assistant message.')
  }
  open.delete(toolCallId)
  const value = toWords(message['content'], `${place}.content`)
  return { type: 'tool-result', toolCallId, toolName: call.toolName, output: { type: 'text', value } }
}

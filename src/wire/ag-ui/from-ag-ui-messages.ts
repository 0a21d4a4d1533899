/**
 * Converts the messages of an AG-UI client to a conversation. The input is untrusted: every field is checked, and errors name its place. Clients
 * older than 1.0 send `binary` parts and `null` for missing values.
 */
import { outcomeText } from '../../fold/open-items.ts'
import { parseInput } from '../../fold/tool-loop.ts'
import type {
  AssistantContent,
  Message,
  ToolMessage,
  ToolOutput,
  ToolResultContent,
  FileContent,
  TextContent,
} from '../../part/message.ts'
import { bad, toArray, toFields, toString, type Fields, toUrl } from '../ui/ui-parts.ts'
import { maxMessages } from '../ui/ui-message.ts'
import { isInnerCall, toCallId, toProviderOptions } from './ag-ui-ids.ts'
import { base64Fault, withPlace } from '../../part/data-url.ts'
import { parseJson } from '../../part/json.ts'

const roles = ['developer', 'system', 'user', 'assistant', 'tool', 'reasoning', 'activity']

/** The message for the results of a call. */
interface ResultsSlot {
  results: ToolResultContent[]
  index: number
}

/**
 * `developer` becomes `system`, `reasoning` becomes the start of the next assistant message, and `activity` is dropped. Results are moved right
 * after their calls. A call without a result gets an error as its result, and a result without a call is dropped: models refuse both. Messages of
 * subagents are dropped: only the result of the call that started one is part of the conversation. At most
 * 10,000 messages. Throws `bad-input` (400).
 */
export function fromAgUiMessages(value: unknown): Message[] {
  const messages: Message[] = []
  const open = new Map<string, ResultsSlot>()
  let reasoning: { id?: string; content: AssistantContent[] } | undefined
  const endReasoning = () => {
    if (reasoning !== undefined) messages.push({ role: 'assistant', ...reasoning })
    reasoning = undefined
  }
  for (const [i, message] of toMessages(value).entries()) {
    const place = `messages[${i}]`
    const id = toId(message, place)
    const { role } = message
    if (isSubagents(message)) continue
    switch (role) {
      case 'activity':
        break
      case 'developer':
      case 'system':
        endReasoning()
        messages.push({ role: 'system', ...id, content: toString(message['content'], `${place}.content`) })
        break
      case 'user':
        endReasoning()
        messages.push({ role, ...id, content: toUserContent(message['content'], `${place}.content`) })
        break
      case 'reasoning': {
        const text = toString(message['content'], `${place}.content`)
        const part: AssistantContent = { type: role, text, ...toProviderOptions(message['encryptedValue']) }
        const own = runOf(id)
        if (reasoning !== undefined && reasoning.id !== own.id) endReasoning()
        reasoning ??= { ...own, content: [] }
        reasoning.content.push(part)
        break
      }
      case 'assistant': {
        const own = runOf(id)
        if (reasoning !== undefined && reasoning.id !== own.id) endReasoning()
        const content = [...(reasoning?.content ?? []), ...toAssistantContent(message, place)]
        reasoning = undefined
        if (content.length > 0) messages.push({ role, ...own, content })
        const results = openCalls(content, open)
        if (results.length > 0) messages.push({ role: 'tool', content: results })
        break
      }
      default: {
        const toolCallId = toString(message['toolCallId'], `${place}.toolCallId`)
        const output = toOutput(message, place)
        const slot = open.get(toolCallId)
        if (slot === undefined) break
        open.delete(toolCallId)
        slot.results[slot.index]!.output = output
      }
    }
  }
  endReasoning()
  return messages.map(withCallIds)
}

function isSubagents({ subagentRunId }: Fields): boolean {
  return typeof subagentRunId === 'string'
}

/** With the log's ids of calls. Before this, each call has a unique name. */
function withCallIds(message: Message): Message {
  const own = <T extends object>(part: T): T => {
    return 'toolCallId' in part ? { ...part, toolCallId: toCallId(part.toolCallId as string) } : part
  }
  if (message.role === 'tool') return { ...message, content: message.content.map(own) }
  if (message.role !== 'assistant' || typeof message.content === 'string') return message
  return { ...message, content: message.content.map(own) }
}

/** The messages with their roles, checked. */
export function toMessages(value: unknown): (Fields & { role: string })[] {
  const list = toArray(value, 'messages')
  if (list.length > maxMessages)
    throw bad('messages', `has ${list.length} entries; at most ${maxMessages} are allowed.`)
  return list.map((item, i) => {
    const message = toFields(item, `messages[${i}]`)
    const { role } = message
    if (typeof role === 'string' && roles.includes(role)) return { ...message, role }
    throw bad(`messages[${i}].role`, `must be one of ${roles.join(', ')}.`)
  })
}

/** The outcome in a `tool` message. JSON text is parsed, as other protocols send it. */
export function toOutput(message: Fields, place: string): ToolOutput {
  const { error } = message
  const output = toResultOutput(message['content'] ?? '', `${place}.content`)
  if (error === undefined || error === null) return output
  const errorText = toString(error, `${place}.error`)
  if (errorText !== '') return { type: 'error-text', value: errorText }
  return output.type === 'text'
    ? { type: 'error-text', value: output.value }
    : { type: 'error-json', value: output.value }
}

function toId({ id }: Fields, place: string): { id?: string } {
  return id === undefined || id === null ? {} : { id: toString(id, `${place}.id`) }
}

/** Our messages have the id `<run>:<n>`: the conversation names the run, whose record is more complete than the client's copy. */
function runOf({ id }: { id?: string }): { id?: string } {
  if (id === undefined) return {}
  const at = id.lastIndexOf(':')
  return { id: at > 0 && /^\d{1,9}$/u.test(id.slice(at + 1)) ? id.slice(0, at) : id }
}

function toAssistantContent(message: Fields, place: string): AssistantContent[] {
  const { content, toolCalls } = message
  const text = content === undefined || content === null ? '' : toString(content, `${place}.content`)
  const said: AssistantContent[] = text === '' ? [] : [{ type: 'text', text }]
  if (toolCalls === undefined || toolCalls === null) return said
  const ids = new Set<string>()
  const calls = toArray(toolCalls, `${place}.toolCalls`).map((item, i): AssistantContent => {
    const at = `${place}.toolCalls[${i}]`
    const call = toFields(item, at)
    const made = toFields(call['function'], `${at}.function`)
    const toolCallId = toName(call['id'], `${at}.id`)
    if (ids.has(toolCallId)) throw bad(`${at}.id`, 'is also the id of another call of this message.')
    ids.add(toolCallId)
    return {
      type: 'tool-call',
      toolCallId,
      toolName: toName(made['name'], `${at}.function.name`),
      input: parseInput(toString(made['arguments'] ?? '', `${at}.function.arguments`)),
      ...toProviderOptions(call['encryptedValue']),
    }
  })
  // Those of scripts are in the message of the call that runs the script.
  return [...said, ...calls.filter((part) => part.type !== 'tool-call' || !isInnerCall(part.toolCallId))]
}

function toName(value: unknown, place: string): string {
  const name = toString(value, place)
  if (name !== '' && name.length <= 256) return name
  throw bad(place, 'must have 1 to 256 characters.')
}

/** Every call starts with an error result; the client's replaces it. */
function openCalls(content: readonly AssistantContent[], open: Map<string, ResultsSlot>): ToolMessage['content'] {
  const results: ToolResultContent[] = []
  for (const part of content) {
    if (part.type !== 'tool-call') continue
    const { toolCallId, toolName } = part
    open.set(toolCallId, { results, index: results.length })
    const output: ToolOutput = { type: 'error-text', value: outcomeText.unavailable }
    results.push({ type: 'tool-result', toolCallId, toolName, output })
  }
  return results
}

/* Reads the content of AG-UI messages: text, or parts with media. */

/** The default media types of parts. */
const media: ReadonlyMap<unknown, string> = new Map([
  ['image', 'image/*'],
  ['audio', 'audio/*'],
  ['video', 'video/*'],
  ['document', 'application/octet-stream'],
])

type UserContent = string | (TextContent | FileContent)[]

function toUserContent(value: unknown, place: string): UserContent {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) throw bad(place, 'must be a string or an array of parts.')
  if (value.length === 0) throw bad(place, 'is empty.')
  return withoutCopies(
    toArray(value, place).map((part, i) => toPart(toFields(part, `${place}[${i}]`), `${place}[${i}]`)),
  )
}

/** Some intermediate versions send a file twice: as `binary`, and as the part that replaced it. */
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

/** The return value of a tool. Text-only parts are joined. */
function toResultOutput(value: unknown, place: string): Extract<ToolOutput, { type: 'text' | 'json' }> {
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

/**
 * Converts the messages of an AG-UI client to a conversation. The input is untrusted: every field is checked, and errors name its
 * place. Clients older than 1.0 send `binary` parts and `null` for what is missing.
 */
import { outcomeText } from '../../fold/open-items.ts'
import { parseInput } from '../../fold/tool-loop.ts'
import type { AssistantContent, Message, ToolMessage, ToolOutput, ToolResultContent } from '../../part/message.ts'
import { bad, toArray, toFields, toString, type Fields } from '../ui/ui-parts.ts'
import { maxMessages } from '../ui/ui-message.ts'
import { toCallId } from './ag-ui-call-names.ts'
import { toResultOutput, toUserContent } from './ag-ui-content.ts'
import { toProviderOptions } from './encrypted-value.ts'

const roles = ['developer', 'system', 'user', 'assistant', 'tool', 'reasoning', 'activity']

/** Where the result of a call belongs. */
interface Slot {
  results: ToolResultContent[]
  index: number
}

/**
 * `developer` becomes `system`, `reasoning` the beginning of the assistant message behind it, and `activity` is dropped. Results stand
 * right behind their calls, wherever the client keeps them. A call without one gets an error as its result, and a result without
 * call is dropped: models refuse both. At most 10,000 messages. Throws `bad-input` (400).
 */
export function fromAgUiMessages(value: unknown): Message[] {
  const messages: Message[] = []
  const open = new Map<string, Slot>()
  let reasoning: { id?: string; content: AssistantContent[] } | undefined
  const endReasoning = () => {
    if (reasoning !== undefined) messages.push({ role: 'assistant', ...reasoning })
    reasoning = undefined
  }
  for (const [i, message] of toMessages(value).entries()) {
    const place = `messages[${i}]`
    const id = toId(message, place)
    const { role } = message
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

/** With the ids of calls that the log has. Up to here each call has a name of its own. */
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

/** The outcome that a `tool` message tells. Text that is JSON is read as JSON, as other protocols send it. */
export function toOutput(message: Fields, place: string): ToolOutput {
  const { error } = message
  const output = toResultOutput(message['content'] ?? '', `${place}.content`)
  if (error === undefined || error === null) return output
  const told = toString(error, `${place}.error`)
  if (told !== '') return { type: 'error-text', value: told }
  return output.type === 'text'
    ? { type: 'error-text', value: output.value }
    : { type: 'error-json', value: output.value }
}

function toId({ id }: Fields, place: string): { id?: string } {
  return id === undefined || id === null ? {} : { id: toString(id, `${place}.id`) }
}

/** Our messages have the id `<run>:<n>`: the conversation names the run, whose record has more than the client's copy. */
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
  return [...said, ...calls]
}

function toName(value: unknown, place: string): string {
  const name = toString(value, place)
  if (name !== '' && name.length <= 256) return name
  throw bad(place, 'must have 1 to 256 characters.')
}

/** Every call has a result from the beginning; the client's replaces it. */
function openCalls(content: readonly AssistantContent[], open: Map<string, Slot>): ToolMessage['content'] {
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

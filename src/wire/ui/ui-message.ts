/**
 * Converts the messages of `/api/chat` to a conversation. They are `{role, content}` or AI SDK `UIMessage`s with `parts`, in any
 * mix. The result equals that of the AI SDK's `convertToModelMessages` (`ignoreIncompleteToolCalls`), except for what is
 * dropped here: approval requests and answers (see `tool-answers.ts`), `reasoning-file`, empty assistant text, and
 * approved calls that have not run, which would be calls without a result.
 */
import type { AssistantContent, Message, ToolResultContent } from '../../part/message.ts'
import { fromModelMessage, toCustom, toUserContent } from '../model-message.ts'
import { toCallAndResult, toToolPart } from './ui-tool-part.ts'
import { bad, toArray, toContent, toFields, toOptions, toString, type Fields } from './ui-parts.ts'

export { toolAnswers } from './tool-answers.ts'
export { toUiMessages } from './to-ui-messages.ts'

const roles: readonly unknown[] = ['system', 'user', 'assistant', 'tool']
export const maxMessages = 10_000

/**
 * An assistant UI message becomes one assistant and one tool message per step, all with its id. At most 10,000 messages. Throws
 * `bad-input` (400) naming the index and the field.
 */
export function fromClientMessages(messages: unknown): Message[] {
  const list = toArray(messages, 'messages')
  if (list.length > maxMessages)
    throw bad('messages', `has ${list.length} entries; at most ${maxMessages} are allowed.`)
  return list.flatMap((value, i) => {
    const place = `messages[${i}]`
    const message = toFields(value, place)
    const role = message['role'] as Message['role']
    if (!roles.includes(role)) throw bad(`${place}.role`, `must be one of ${roles.join(', ')}.`)
    if (message['parts'] === undefined) {
      if (message['content'] === undefined) throw bad(place, 'has neither content nor parts.')
      return fromModelMessage(role, message, place) ?? []
    }
    const parts = toArray(message['parts'], `${place}.parts`).map((part, p) => toFields(part, `${place}.parts[${p}]`))
    const id = message['id'] === undefined ? undefined : toString(message['id'], `${place}.id`)
    const converted = fromUiParts(role, parts, `${place}.parts`)
    return id === undefined ? converted : converted.map((made) => ({ ...made, id }))
  })
}

function fromUiParts(role: Message['role'], parts: Fields[], place: string): Message[] {
  switch (role) {
    case 'system': {
      const texts = parts.flatMap((part, i) => (part['type'] === 'text' ? [toContent(part, `${place}[${i}]`)!] : []))
      const providerOptions = Object.assign({}, ...texts.map((text) => text.providerOptions)) as Fields
      const content = texts.map((text) => ('text' in text ? text.text : '')).join('')
      return [{ role, content, ...toOptions(Object.keys(providerOptions).length > 0 ? providerOptions : undefined) }]
    }
    case 'user': {
      const content = parts.flatMap((part, i) =>
        part['type'] === 'text' || part['type'] === 'file' ? [toUserContent(part, `${place}[${i}]`)] : [],
      )
      if (content.length === 0) throw bad(place, 'contains no text and no file for the model.')
      return [{ role, content }]
    }
    case 'assistant':
      return fromAssistantParts(parts, place)
    case 'tool':
      throw bad(
        place,
        'is not allowed in a tool message: put tool results into the parts of the assistant message, or into `content`.',
      )
  }
}

function fromAssistantParts(parts: Fields[], place: string): Message[] {
  const messages: Message[] = []
  let content: AssistantContent[] = []
  let results: ToolResultContent[] = []
  const endStep = () => {
    if (content.length > 0) messages.push({ role: 'assistant', content })
    if (results.length > 0) messages.push({ role: 'tool', content: results })
    content = []
    results = []
  }
  for (const [i, part] of parts.entries()) {
    const at = `${place}[${i}]`
    const { type } = part
    if (type === 'step-start') endStep()
    else if (type === 'custom') content.push(toCustom(part, at))
    else if (type === 'text' || type === 'reasoning' || type === 'file') {
      const made = toContent(part, at)!
      if (made.type !== 'text' || made.text !== '' || made.providerOptions) content.push(made)
    } else {
      const tool = toToolPart(part, at)
      const pair = tool && toCallAndResult(tool)
      if (!pair) continue
      content.push(pair.call)
      if (pair.call.providerExecuted) content.push(pair.result)
      else results.push(pair.result)
    }
  }
  endStep()
  return messages
}

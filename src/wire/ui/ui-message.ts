/**
 * Converts the messages of `/api/chat` to a conversation. They are `{role, content}` or AI SDK `UIMessage`s with `parts`, in any mix. The result
 * equals that of the AI SDK's `convertToModelMessages` (`ignoreIncompleteToolCalls`), except for the content that is dropped here: approval
 * requests and replies (see `tool-answers.ts`), `reasoning-file`, empty assistant text, and approved calls that have not run, which would be calls
 * without a result.
 */
import type {
  AssistantContent,
  Message,
  ToolResultContent,
  FileContent,
  ToolOutput,
  ToolCallContent,
} from '../../part/message.ts'
import { fromModelMessage, toCustom, toUserContent, approvalsOf, toResult } from '../model-message.ts'
import { bad, toArray, toContent, toFields, toOptions, toString, type Fields } from './ui-parts.ts'
import type { Reply } from '../../part/request-part.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'

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
      const pair = tool && !isInner(tool) && toCallAndResult(tool)
      if (!pair) continue
      content.push(pair.call)
      if (pair.call.providerExecuted) content.push(pair.result)
      else results.push(pair.result)
    }
  }
  endStep()
  return messages
}

/**
 * Reads a chat client's replies to tool calls and approval requests. They are in the last assistant message (`useChat` sends it again with the
 * outputs filled in) or in `tool` messages at the end. A user message after them starts a new turn, so there are no replies then. The server
 * matches them with open requests.
 */
interface ToolAnswer {
  toolCallId: string
  answer: Reply
}

/** Throws `bad-input` (400) naming the index and the field. */
export function toolAnswers(messages: unknown): ToolAnswer[] {
  const list = toArray(messages, 'messages').map((message, i) => toFields(message, `messages[${i}]`))
  let first = list.length
  while (first > 0 && list[first - 1]!['role'] === 'tool') first--
  const assistant = list[first - 1]
  // Keyed by call id: providers reuse ids in later steps, and only the last call can be open.
  const answers = new Map<string, Reply | undefined>()
  if (assistant?.['role'] === 'assistant' && Array.isArray(assistant['parts'])) {
    for (const [i, value] of assistant['parts'].entries()) {
      const place = `messages[${first - 1}].parts[${i}]`
      const tool = toToolPart(toFields(value, place), place)
      if (tool) answers.set(tool.toolCallId, toAnswer(tool))
    }
  }
  const approvals = assistant ? approvalsOf(assistant) : new Map<string, string>()
  for (let m = first; m < list.length; m++) {
    const content = toArray(list[m]!['content'], `messages[${m}].content`)
    for (const [i, value] of content.entries()) {
      const place = `messages[${m}].content[${i}]`
      const [toolCallId, answer] = toPartAnswer(toFields(value, place), place, approvals) ?? []
      if (toolCallId !== undefined) answers.set(toolCallId, answer)
    }
  }
  return [...answers].flatMap(([toolCallId, answer]) => (answer ? [{ toolCallId, answer }] : []))
}

function toPartAnswer(part: Fields, place: string, approvals: Map<string, string>): [string, Reply] | undefined {
  if (part['type'] === 'tool-approval-response') {
    const toolCallId = approvals.get(String(part['approvalId']))
    if (toolCallId === undefined) return undefined
    const answer: Reply = { kind: 'approval', approved: part['approved'] === true }
    if (typeof part['reason'] === 'string') answer.reason = part['reason']
    return [toolCallId, answer]
  }
  if (part['type'] !== 'tool-result') return undefined
  const { toolCallId, output } = toResult(part, place)
  switch (output.type) {
    case 'text':
    case 'json':
      return [toolCallId, { kind: 'tool', output: output.value }]
    case 'error-text':
    case 'error-json':
      return [toolCallId, { kind: 'tool', output: output.value, isError: true }]
    case 'execution-denied': {
      const answer: Reply = { kind: 'approval', approved: false }
      if (output.reason !== undefined) answer.reason = output.reason
      return [toolCallId, answer]
    }
  }
}

/* Converts a conversation to AI SDK `UIMessage`s, for pages and `initialMessages`. The reverse of `fromClientMessages`. */

/** The subset of the AI SDK's `UIMessage` that we produce; assignable to it. */
interface UiMessage {
  id: string
  role: 'system' | 'user' | 'assistant'
  parts: UiPart[]
}
type UiPart = { type: string; [field: string]: unknown }

/**
 * Adjacent assistant and tool messages become one UI message; an assistant message with another id starts a new one. A message
 * without an id gets `message-<index>`.
 */
export function toUiMessages(messages: readonly Message[]): UiMessage[] {
  const list: UiMessage[] = []
  for (const [i, message] of messages.entries()) {
    const last = list.at(-1)
    const id = message.id ?? `message-${i}`
    switch (message.role) {
      case 'system':
      case 'user':
        list.push({ id, role: message.role, parts: toParts(message.content) })
        break
      case 'assistant': {
        const joins = last?.role === 'assistant' && (message.id === undefined || message.id === last.id)
        const own = joins ? last : { id, role: message.role, parts: [] }
        if (!joins) list.push(own)
        const results: ToolResultContent[] = []
        own.parts.push({ type: 'step-start' })
        for (const part of toParts(message.content)) {
          if (part.type === 'tool-result') results.push(part['content'] as ToolResultContent)
          else own.parts.push(part)
        }
        settleAll(own, results)
        break
      }
      case 'tool':
        if (last) settleAll(last, message.content)
    }
  }
  return list
}

function toParts(content: string | readonly AssistantContent[]): UiPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content, state: 'done' }]
  return content.map((part): UiPart => {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        return omitUndefined({
          type: part.type,
          text: part.text,
          state: 'done',
          providerMetadata: part.providerOptions,
        })
      case 'file': {
        const { type, mediaType, filename, providerOptions: providerMetadata } = part
        return omitUndefined({ type, mediaType, filename, url: toUrl(part), providerMetadata })
      }
      case 'custom':
        return omitUndefined({ type: 'custom', kind: part.kind, providerMetadata: part.providerOptions })
      case 'tool-call': {
        const { toolCallId, toolName, input, providerExecuted, providerOptions: callProviderMetadata } = part
        const call = { toolCallId, state: 'input-available', input, providerExecuted, callProviderMetadata }
        return omitUndefined({ type: `tool-${toolName}`, ...call })
      }
      case 'tool-result':
        return { type: 'tool-result', content: part }
    }
  })
}

/** Uses a map: a message may hold thousands of calls. If calls share an id, the last counts. */
function settleAll(message: UiMessage, results: readonly ToolResultContent[]): void {
  if (results.length === 0) return
  const parts = new Map(message.parts.map((part) => [part['toolCallId'], part]))
  for (const { toolCallId, output, providerOptions } of results) {
    const part = parts.get(toolCallId)
    if (!part) continue
    Object.assign(part, toOutcome(output))
    if (providerOptions && part['providerExecuted'] === true) part['resultProviderMetadata'] = providerOptions
  }
}

function toOutcome(output: ToolOutput): Record<string, unknown> {
  switch (output.type) {
    case 'text':
    case 'json':
      return { state: 'output-available', output: output.value }
    case 'error-text':
      return { state: 'output-error', errorText: output.value }
    case 'error-json':
      return {
        state: 'output-error',
        errorText: typeof output.value === 'string' ? output.value : JSON.stringify(output.value),
      }
    case 'execution-denied': {
      const approval = omitUndefined({ id: 'denied', approved: false, reason: output.reason })
      return { state: 'output-denied', approval }
    }
  }
}

function toUrl({ data, mediaType }: FileContent): string {
  return /^(data:|https?:\/\/)/i.test(data) ? data : `data:${mediaType};base64,${data}`
}

/** Reads a tool part of an AI SDK `UIMessage`. The input is untrusted. */
interface UiToolPart {
  toolCallId: string
  toolName: string
  state: string
  providerExecuted: boolean
  fields: Fields
}

const states: ReadonlySet<unknown> = new Set([
  'input-streaming',
  'input-available',
  'approval-requested',
  'approval-responded',
  'output-available',
  'output-error',
  'output-denied',
])

/** `tool-<name>` or `dynamic-tool`; `undefined` for any other part. */
function toToolPart(part: Fields, place: string): UiToolPart | undefined {
  const type = String(part['type'])
  if (type === 'tool-invocation' && !('state' in part)) return toOldToolPart(part['toolInvocation'], place)
  const dynamic = type === 'dynamic-tool'
  if (!dynamic && !(type.startsWith('tool-') && 'state' in part)) return undefined
  const { state } = part
  if (!states.has(state)) throw bad(`${place}.state`, `must be one of ${[...states].join(', ')}.`)
  return {
    toolCallId: toString(part['toolCallId'], `${place}.toolCallId`),
    toolName: dynamic ? toString(part['toolName'], `${place}.toolName`) : type.slice('tool-'.length),
    state: state as string,
    providerExecuted: part['providerExecuted'] === true,
    fields: part,
  }
}

/** As version 4 of the AI SDK stored calls. */
function toOldToolPart(value: unknown, place: string): UiToolPart | undefined {
  const at = `${place}.toolInvocation`
  const { toolCallId, toolName, args, state, result } = toFields(value, at)
  return {
    toolCallId: toString(toolCallId, `${at}.toolCallId`),
    toolName: toString(toolName, `${at}.toolName`),
    state: state === 'result' ? 'output-available' : 'input-available',
    providerExecuted: false,
    fields: { input: args ?? {}, output: result },
  }
}

/** Whether a called agent has made the call: then it is no part of the conversation, whose call of that agent has a result of its own. */
function isInner({ fields }: UiToolPart): boolean {
  const { millrace } = (fields['callProviderMetadata'] ?? {}) as { millrace?: { parentToolCallId?: unknown } | null }
  return typeof millrace?.parentToolCallId === 'string'
}

/** The call and its result. Undefined without a result: models refuse requests with unanswered calls. */
function toCallAndResult(part: UiToolPart): { call: ToolCallContent; result: ToolResultContent } | undefined {
  const output = toOutput(part)
  if (!output) return undefined
  const { toolCallId, toolName, providerExecuted, state, fields } = part
  const { callProviderMetadata, resultProviderMetadata } = fields
  const failed = state === 'output-error'
  const input = failed ? (fields['input'] ?? fields['rawInput']) : fields['input']
  const call: ToolCallContent = { type: 'tool-call', toolCallId, toolName, input }
  if (providerExecuted) call.providerExecuted = true
  Object.assign(call, toOptions(callProviderMetadata ?? (failed ? resultProviderMetadata : undefined)))
  const options = providerExecuted ? (resultProviderMetadata ?? callProviderMetadata) : callProviderMetadata
  return { call, result: { type: 'tool-result', toolCallId, toolName, output, ...toOptions(options) } }
}

function toOutput({ state, providerExecuted, fields }: UiToolPart): ToolOutput | undefined {
  const approval = fields['approval'] as { approved?: unknown; reason?: unknown } | undefined
  const reason = typeof approval?.reason === 'string' ? approval.reason : undefined
  switch (state) {
    case 'output-available': {
      const { output = null, preliminary } = fields
      if (preliminary === true) return undefined
      return typeof output === 'string' ? { type: 'text', value: output } : { type: 'json', value: output }
    }
    case 'output-error':
      return { type: providerExecuted ? 'error-json' : 'error-text', value: errorText(fields) }
    case 'output-denied':
      return { type: 'error-text', value: reason ?? 'Tool call execution denied.' }
    case 'approval-responded':
      if (approval?.approved !== false) return undefined
      return reason === undefined ? { type: 'execution-denied' } : { type: 'execution-denied', reason }
    default:
      return undefined
  }
}

/** The client's reply to the request for this call, if any. */
function toAnswer({ state, fields, providerExecuted }: UiToolPart): Reply | undefined {
  if (state === 'approval-responded') {
    const { approved, reason } = (fields['approval'] ?? {}) as { approved?: unknown; reason?: unknown }
    const answer: Reply = { kind: 'approval', approved: approved === true }
    if (typeof reason === 'string') answer.reason = reason
    return answer
  }
  if (providerExecuted || fields['preliminary'] === true) return undefined
  if (state === 'output-available') return { kind: 'tool', output: fields['output'] ?? null }
  if (state === 'output-error') return { kind: 'tool', output: errorText(fields), isError: true }
  return undefined
}

function errorText({ errorText }: Fields): string {
  return typeof errorText === 'string' ? errorText : (JSON.stringify(errorText) ?? '')
}

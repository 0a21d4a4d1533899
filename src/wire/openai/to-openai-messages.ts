/** Converts a conversation to OpenAI's message format, for traces. */
import type { AssistantContent, FileContent, Message, TextContent, ToolResultContent } from '../../part/message.ts'
import { toOpenAiCallId } from '../../part/openai-call-id.ts'
import { toFileUrl } from '../ui/ui-chunk.ts'
import { toToolOutput, type Signed } from './openai-output.ts'

export interface OpenAiMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string | null | OpenAiContent[]
  reasoning_content?: string
  tool_calls?: OpenAiToolCall[]
  tool_call_id?: string
}
export interface OpenAiToolCall extends Partial<Signed> {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
}
export type OpenAiContent =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: { url: string } }
  | { type: 'file'; file: { filename?: string; file_data: string } }

export interface ToOpenAiMessages {
  /** Tool outputs are truncated as on the rest of the wire. */
  toolOutputMaxChars: number
  /** Selects calls that no wire shows; their results are dropped too. */
  isHidden(part: { toolCallId: string; toolName: string }): boolean
}

/** Drops provider-specific content (`custom` parts, options). Never throws. */
export function toOpenAiMessages(messages: readonly Message[], options: ToOpenAiMessages): OpenAiMessage[] {
  return messages.flatMap((message) => {
    try {
      return toOpenAiMessage(message, options)
    } catch {
      // A prompt is recorded before the model validates it, so it may contain invalid messages. They are shown as JSON.
      return [{ role: message.role, content: JSON.stringify(message.content) ?? null }]
    }
  })
}

function toOpenAiMessage({ role, content }: Message, options: ToOpenAiMessages): OpenAiMessage[] {
  switch (role) {
    case 'system':
      return [{ role, content }]
    case 'user':
      return [{ role, content: typeof content === 'string' ? content : toContent(content) }]
    case 'assistant':
      return typeof content === 'string' ? [{ role, content }] : fromAssistant(content, options)
    case 'tool':
      return content.flatMap((result) => fromResult(result, options))
  }
}

function fromAssistant(parts: readonly AssistantContent[], options: ToOpenAiMessages): OpenAiMessage[] {
  const message: OpenAiMessage = { role: 'assistant', content: null }
  const said: (TextContent | FileContent)[] = []
  const calls: OpenAiToolCall[] = []
  const results: OpenAiMessage[] = []
  let reasoning = ''
  for (const part of parts) {
    switch (part.type) {
      case 'text':
      case 'file':
        said.push(part)
        break
      case 'reasoning':
        reasoning += part.text
        break
      case 'tool-call': {
        const { toolCallId, toolName: name, input } = part
        if (options.isHidden(part)) break
        // Invalid JSON stays the text that the model wrote.
        const json = typeof input === 'string' ? input : JSON.stringify(input)
        calls.push({ id: toOpenAiCallId(toolCallId), type: 'function', function: { name, arguments: json } })
        break
      }
      case 'tool-result':
        results.push(...fromResult(part, options))
        break
      case 'custom':
        break
    }
  }
  if (said.length > 0) message.content = toContent(said)
  if (reasoning !== '') message.reasoning_content = reasoning
  if (calls.length > 0) message.tool_calls = calls
  const isEmpty = said.length === 0 && reasoning === '' && calls.length === 0
  return isEmpty ? results : [message, ...results]
}

function fromResult(part: ToolResultContent, { toolOutputMaxChars, isHidden }: ToOpenAiMessages): OpenAiMessage[] {
  if (isHidden(part)) return []
  const { toolCallId, output } = part
  const value = output.type === 'execution-denied' ? (output.reason ?? 'denied') : output.value
  return [{ role: 'tool', tool_call_id: toOpenAiCallId(toolCallId), content: toToolOutput(value, toolOutputMaxChars) }]
}

/** Text alone becomes a string, as most servers expect. */
function toContent(parts: readonly (TextContent | FileContent)[]): string | OpenAiContent[] {
  if (parts.every((part) => part.type === 'text')) return parts.map(({ text }) => text).join('')
  return parts.map((part): OpenAiContent => {
    if (part.type === 'text') return { type: 'text', text: part.text }
    const { mediaType, data, filename } = part
    const url = /^(data:|https?:)/u.test(data) ? data : toFileUrl(mediaType, data)
    if (mediaType.startsWith('image/')) return { type: 'image_url', image_url: { url } }
    return { type: 'file', file: { ...(filename === undefined ? undefined : { filename }), file_data: url } }
  })
}

/**
 * Converts a prompt to LangChain messages: plain objects, which its chat models coerce into their own classes.
 *
 * | prompt | LangChain |
 * |---|---|
 * | text; image | `text`; `image_url` with a URL or a data URL, which every integration supports |
 * | audio, other files | a data block: `source_type` `url` or `base64`, `mime_type`, `metadata.filename` |
 * | reasoning with a signature | a `thinking` block; dropped without a signature, because no provider accepts it |
 * | tool calls | `tool_calls` |
 * | tool result | a `tool` message with text (other values as JSON) and `status` |
 * | provider-executed calls, `custom` parts, assistant files | dropped: LangChain has no common form |
 */
import type { LanguageModelV4FilePart, LanguageModelV4Prompt, LanguageModelV4ToolResultPart } from '@ai-sdk/provider'
import { toBase64 } from '../../part/entry.ts'

export interface LangChainMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string | Record<string, unknown>[]
  tool_calls?: { type: 'tool_call'; id: string; name: string; args: unknown }[]
  tool_call_id?: string
  name?: string
  status?: 'success' | 'error'
}

/** Key of the provider metadata that is sent back to the model: `providerMetadata.langchain`. */
export const metadataKey = 'langchain'

export function toLangChainMessages(prompt: LanguageModelV4Prompt): LangChainMessage[] {
  return prompt.flatMap((message): LangChainMessage[] => {
    const { role, content } = message
    switch (role) {
      case 'system':
        return [{ role, content }]
      case 'user':
        return [{ role, content: fromUser(content) }]
      case 'assistant':
        return [fromAssistant(content)]
      case 'tool':
        return content.flatMap((part) => (part.type === 'tool-result' ? [fromResult(part)] : []))
    }
  })
}

type User = Extract<LanguageModelV4Prompt[number], { role: 'user' }>['content']

function fromUser(parts: User): LangChainMessage['content'] {
  const [first, ...rest] = parts
  // Some servers accept a single text only as a string.
  if (first?.type === 'text' && rest.length === 0) return first.text
  return parts.map((part) => (part.type === 'text' ? textBlock(part.text) : toBlock(part)))
}

type Assistant = Extract<LanguageModelV4Prompt[number], { role: 'assistant' }>['content']

function fromAssistant(parts: Assistant): LangChainMessage {
  const blocks: Record<string, unknown>[] = []
  const calls: NonNullable<LangChainMessage['tool_calls']> = []
  for (const part of parts) {
    if (part.type === 'text') blocks.push(textBlock(part.text))
    else if (part.type === 'reasoning') {
      // Built here rather than copied, so that client-supplied metadata cannot produce another kind of block.
      const signature = part.providerOptions?.[metadataKey]?.['signature']
      if (typeof signature === 'string') blocks.push({ type: 'thinking', thinking: part.text, signature })
    } else if (part.type === 'tool-call' && part.providerExecuted !== true) {
      calls.push({ type: 'tool_call', id: part.toolCallId, name: part.toolName, args: part.input })
    }
  }
  const onlyText = blocks.every(({ type }) => type === 'text')
  return {
    role: 'assistant',
    // Some providers accept assistant text only as a string.
    content: onlyText ? blocks.map(({ text }) => String(text)).join('') : blocks,
    ...(calls.length > 0 ? { tool_calls: calls } : undefined),
  }
}

function fromResult({ toolCallId, toolName, output }: LanguageModelV4ToolResultPart): LangChainMessage {
  const failed = output.type === 'error-text' || output.type === 'error-json' || output.type === 'execution-denied'
  return {
    role: 'tool',
    tool_call_id: toolCallId,
    name: toolName,
    content: toContent(output),
    status: failed ? 'error' : 'success',
  }
}

function toContent(output: LanguageModelV4ToolResultPart['output']): LangChainMessage['content'] {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return output.value
    case 'json':
    case 'error-json':
      return JSON.stringify(output.value)
    case 'execution-denied':
      return `The call was denied${output.reason === undefined ? '' : `: ${output.reason}`}.`
    case 'content':
      return output.value.flatMap((part) => {
        if (part.type === 'text') return [textBlock(part.text)]
        return part.type === 'file' ? [toBlock(part)] : []
      })
  }
}

function textBlock(text: string) {
  return { type: 'text', text }
}

/** Throws a `TypeError` for a reference to a file stored at a provider. */
function toBlock({ data, mediaType, filename }: Pick<LanguageModelV4FilePart, 'data' | 'mediaType' | 'filename'>) {
  if (data.type === 'text') return textBlock(data.text)
  if (data.type === 'reference')
    throw new TypeError('a file stored at a provider cannot be sent through LangChain; send its data or a URL instead')
  const [kind] = mediaType.split('/')
  const base64 = data.type === 'url' ? undefined : typeof data.data === 'string' ? data.data : toBase64(data.data)
  const url = data.type === 'url' ? String(data.url) : undefined
  if (kind === 'image') {
    // A data URL needs a full media type, not just `image` or `image/*`.
    const type = mediaType.includes('/') && !mediaType.endsWith('/*') ? mediaType : 'image/png'
    return { type: 'image_url', image_url: { url: url ?? `data:${type};base64,${base64}` } }
  }
  return {
    type: kind === 'audio' ? 'audio' : 'file',
    mime_type: mediaType,
    ...(url === undefined ? { source_type: 'base64', data: base64 } : { source_type: 'url', url }),
    metadata: { filename: filename ?? 'file' },
  }
}

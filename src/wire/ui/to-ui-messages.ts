/** Converts a conversation to AI SDK `UIMessage`s, for pages and `initialMessages`. The reverse of `fromClientMessages`. */
import { compact } from '../../part/compact.ts'
import type { AssistantContent, FileContent, Message, ToolOutput, ToolResultContent } from '../../part/message.ts'

/** The subset of the AI SDK's `UIMessage` that we produce; assignable to it. */
export interface UiMessage {
  id: string
  role: 'system' | 'user' | 'assistant'
  parts: UiPart[]
}
export type UiPart = { type: string; [field: string]: unknown }

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
        return compact({ type: part.type, text: part.text, state: 'done', providerMetadata: part.providerOptions })
      case 'file': {
        const { type, mediaType, filename, providerOptions: providerMetadata } = part
        return compact({ type, mediaType, filename, url: toUrl(part), providerMetadata })
      }
      case 'custom':
        return compact({ type: 'custom', kind: part.kind, providerMetadata: part.providerOptions })
      case 'tool-call': {
        const { toolCallId, toolName, input, providerExecuted, providerOptions: callProviderMetadata } = part
        const call = { toolCallId, state: 'input-available', input, providerExecuted, callProviderMetadata }
        return compact({ type: `tool-${toolName}`, ...call })
      }
      case 'tool-result':
        return { type: 'tool-result', content: part }
    }
  })
}

/** Calls are looked up: a message may hold thousands. Of calls with the same id the last counts. */
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
      const approval = compact({ id: 'denied', approved: false, reason: output.reason })
      return { state: 'output-denied', approval }
    }
  }
}

function toUrl({ data, mediaType }: FileContent): string {
  return /^(data:|https?:\/\/)/i.test(data) ? data : `data:${mediaType};base64,${data}`
}

/** A call of the internal tool `parallel` that stands for several calls of declared tools. */
import type { LanguageModelV4ToolCall } from '@ai-sdk/provider'
import { isJSONObject } from '@ai-sdk/provider'
import { secureJsonParse } from '@ai-sdk/provider-utils'
import { isUndeclaredParallel } from './item-added.ts'
import type { State } from './state.ts'

const prefix = 'functions.'

interface Wrapper {
  id: string
  call_id: string
  name: string
  arguments: string
}

/** Undefined if any of the calls is not one of a declared tool: then the wrapper stays a call. */
export function expandParallelCall(state: State, wrapper: Wrapper): LanguageModelV4ToolCall[] | undefined {
  // The name may have changed since the call began.
  if (!isUndeclaredParallel(state, wrapper.name)) return undefined
  const uses = usesIn(wrapper.arguments)
  if (uses === undefined) return undefined
  const calls: LanguageModelV4ToolCall[] = []
  for (const [index, use] of uses.entries()) {
    if (!isJSONObject(use)) return undefined
    const { recipient_name: recipient, parameters } = use
    if (typeof recipient !== 'string' || !recipient.startsWith(prefix) || !isJSONObject(parameters)) return undefined
    const toolName = recipient.slice(prefix.length)
    if (toolName.length === 0 || !state.functionNames.has(toolName)) return undefined
    const parallelToolCall = {
      itemId: wrapper.id,
      toolCallId: wrapper.call_id,
      toolName: wrapper.name,
      ...(index === 0 && { input: wrapper.arguments }),
      index,
      count: uses.length,
    }
    calls.push({
      type: 'tool-call',
      toolCallId: `${wrapper.call_id}_${index}`,
      toolName,
      input: JSON.stringify(parameters),
      providerMetadata: { [state.metadataKey]: { parallelToolCall } },
    })
  }
  return calls
}

function usesIn(text: string): unknown[] | undefined {
  let input: unknown
  try {
    input = secureJsonParse(text)
  } catch {
    return undefined
  }
  if (!isJSONObject(input)) return undefined
  const uses = input['tool_uses']
  return Array.isArray(uses) && uses.length > 0 ? uses : undefined
}

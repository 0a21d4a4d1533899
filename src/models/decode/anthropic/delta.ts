/** Deltas and ends of content blocks. */
import type { JSONObject } from '@ai-sdk/provider'
import { secureJsonParse } from '@ai-sdk/provider-utils'
import { readCitation, textEnd } from './citations.ts'
import { jsonPlaces, textPlaces, thinkingPlaces } from './event.ts'
import type { EventOf } from './event-schema.ts'
import type { AnthropicState, ToolBlock } from './state.ts'
import type { Learn } from '../event-decoder.ts'

export function readDelta(state: AnthropicState, { index, delta }: EventOf<'content_block_delta'>, learn: Learn): void {
  const { emit } = state
  const id = String(index)
  switch (delta.type) {
    case 'text_delta': {
      if (state.facts.usesJsonTool) {
        const held = state.heldByIndex.get(index)
        if (held !== undefined) held.text += delta.text
        return
      }
      const emitText = (text: string) => emit({ type: 'text-delta', id, delta: text })
      emitText(delta.text)
      return learn(textPlaces, emitText)
    }
    case 'thinking_delta': {
      const emitThought = (text: string) => emit({ type: 'reasoning-delta', id, delta: text })
      emitThought(delta.thinking)
      return learn(thinkingPlaces, emitThought)
    }
    case 'signature_delta': {
      if (state.current !== 'thinking') return
      const providerMetadata = { anthropic: { signature: delta.signature } }
      return emit({ type: 'reasoning-delta', id, delta: '', providerMetadata })
    }
    case 'compaction_delta':
      if (typeof delta.content === 'string') emit({ type: 'text-delta', id, delta: delta.content })
      return
    case 'input_json_delta':
      readInput(state, index, delta.partial_json)
      return learn(jsonPlaces, (text) => readInput(state, index, text))
    case 'citations_delta':
      return readCitation(state, index, delta.citation)
  }
}

function readInput(state: AnthropicState, index: number, text: string): void {
  const { emit } = state
  const block = state.blocks.get(index)
  if (text === '') return
  if (state.calledJson) {
    if (block?.type === 'text') emit({ type: 'text-delta', id: String(index), delta: text })
    return
  }
  if (block?.type !== 'tool-call') return
  const isTyped = block.isFirst && block.inputType !== undefined
  const delta = isTyped ? `{"type": "${block.inputType}",${text.slice(1)}` : text
  emit({ type: 'tool-input-delta', id: block.toolCallId, delta })
  block.input += delta
  block.isFirst = false
}

export function stopBlock(state: AnthropicState, index: number): void {
  const { blocks, emit, facts } = state
  const block = blocks.get(index)
  blocks.delete(index)
  state.current = undefined
  if (block === undefined) return
  if (block.type === 'text') emit(textEnd(state, String(index), block.citations))
  else if (block.type === 'reasoning') emit({ type: 'reasoning-end', id: String(index) })
  else if (!facts.usesJsonTool || block.toolName !== 'json') stopCall(state, block)
}

function stopCall({ emit }: AnthropicState, block: ToolBlock): void {
  const { toolCallId, toolName, providerExecuted, caller } = block
  emit({ type: 'tool-input-end', id: toolCallId })
  const providerMetadata = caller && { anthropic: { caller: caller as unknown as JSONObject } }
  emit({
    type: 'tool-call',
    toolCallId,
    toolName,
    input: finalInput(block),
    ...(providerExecuted === undefined ? undefined : { providerExecuted }),
    ...(providerMetadata && { providerMetadata }),
  })
}

function finalInput({ input, providerTool }: ToolBlock): string {
  const text = input === '' ? '{}' : input
  if (providerTool !== 'code_execution') return text
  try {
    const value: unknown = secureJsonParse(text)
    const isCode = typeof value === 'object' && value !== null && 'code' in value && !('type' in value)
    return isCode ? JSON.stringify({ type: 'programmatic-tool-call', ...value }) : text
  } catch {
    return text
  }
}

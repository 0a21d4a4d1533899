/** The start of a content block. */
import { InvalidResponseDataError } from '@ai-sdk/provider'
import type { ContentBlock } from './block-schema.ts'
import { readServerResult } from './results.ts'
import { callerOf, type AnthropicState } from './state.ts'

type BlockOf<T extends ContentBlock['type']> = Extract<ContentBlock, { type: T }>

export function startBlock(state: AnthropicState, index: number, block: ContentBlock): void {
  const { emit, facts, blocks } = state
  const id = String(index)
  if (block.type === 'fallback') {
    const { type, from, to } = block
    emit({ type: 'custom', kind: 'anthropic.fallback', providerMetadata: { anthropic: { type, from, to } } })
    return
  }
  state.current = block.type
  // Text before a tool call or a result is not the answer.
  if (!proseTypes.has(block.type)) state.held.length = 0
  switch (block.type) {
    case 'text': {
      if (facts.usesJsonTool) {
        const held = { id, text: '', citations: [] }
        state.held.push(held)
        state.heldByIndex.set(index, held)
        return
      }
      blocks.set(index, { type: 'text', citations: [] })
      emit({ type: 'text-start', id })
      return
    }
    case 'thinking':
      blocks.set(index, { type: 'reasoning' })
      emit({ type: 'reasoning-start', id })
      return
    case 'redacted_thinking':
      blocks.set(index, { type: 'reasoning' })
      emit({ type: 'reasoning-start', id, providerMetadata: { anthropic: { redactedData: block.data } } })
      return
    case 'compaction':
      return startCompaction(state, index, block)
    case 'tool_use':
      return startCall(state, index, block)
    case 'server_tool_use':
      return startServerCall(state, index, block)
    default:
      readServerResult(state, block)
  }
}

const proseTypes: ReadonlySet<string> = new Set(['redacted_thinking', 'text', 'thinking'])

function startCompaction({ blocks, emit }: AnthropicState, index: number, block: BlockOf<'compaction'>): void {
  const { signature, content } = block
  const id = String(index)
  blocks.set(index, { type: 'text', citations: [] })
  const signed = typeof signature === 'string' ? { signature } : undefined
  emit({ type: 'text-start', id, providerMetadata: { anthropic: { type: 'compaction', ...signed } } })
  // With a signature the block is complete.
  if (signed && content) emit({ type: 'text-delta', id, delta: content })
}

function startCall(state: AnthropicState, index: number, block: BlockOf<'tool_use'>): void {
  const { emit, facts, blocks } = state
  if (facts.usesJsonTool && block.name === 'json') {
    state.calledJson = true
    blocks.set(index, { type: 'text', citations: [] })
    emit({ type: 'text-start', id: String(index) })
    return
  }
  const { id: toolCallId, name: toolName, toolset_name: toolsetName } = block
  if (typeof toolsetName === 'string') {
    // Toolsets are provider tools: the request had none.
    throw new InvalidResponseDataError({
      data: { toolsetName, memberName: toolName },
      message: `Received an unavailable toolset member: ${toolsetName}.${toolName}.`,
    })
  }
  const input = inputOf(block.input)
  const caller = callerOf(block.caller)
  blocks.set(index, { type: 'tool-call', toolCallId, toolName, input, isFirst: input === '', caller })
  emit({ type: 'tool-input-start', id: toolCallId, toolName })
}

/** An empty object means that the arguments come in deltas. */
function inputOf(input: Record<string, unknown> | null | undefined): string {
  return input && Object.keys(input).length > 0 ? JSON.stringify(input) : ''
}

/** The tools that run code are one tool for the user, and its arguments say which. */
const codeTools: ReadonlyMap<string, string> = new Map([
  ['text_editor_code_execution', 'text_editor_code_execution'],
  ['bash_code_execution', 'bash_code_execution'],
  ['code_execution', 'programmatic-tool-call'],
])

function startServerCall(state: AnthropicState, index: number, block: BlockOf<'server_tool_use'>): void {
  const { id: toolCallId, name } = block
  const inputType = codeTools.get(name)
  const toolName = inputType === undefined ? name : 'code_execution'
  let input = ''
  switch (name) {
    case 'web_fetch':
    case 'web_search':
    case 'code_execution':
    case 'text_editor_code_execution':
    case 'bash_code_execution':
      input = inputOf(block.input)
      break
    case 'tool_search_tool_regex':
    case 'tool_search_tool_bm25':
      state.searchTools[toolCallId] = name
      break
    case 'advisor':
      input = '{}'
      break
    default:
      return
  }
  const isFirst = input === '' || name === 'advisor'
  const caller = callerOf(block.caller)
  const executed = { providerExecuted: true, providerTool: toolName, inputType, caller }
  state.blocks.set(index, { type: 'tool-call', toolCallId, toolName, input, isFirst, ...executed })
  state.emit({ type: 'tool-input-start', id: toolCallId, toolName, providerExecuted: true })
}

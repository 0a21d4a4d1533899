/** Results of tools that Anthropic runs itself. */
import type { JSONObject, JSONValue, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { Caller, ContentBlock } from './block-schema.ts'
import { callerOf, type AnthropicState } from './state.ts'

type BlockOf<T extends ContentBlock['type']> = Extract<ContentBlock, { type: T }>
type ServerBlock = Exclude<
  ContentBlock,
  { type: 'text' | 'thinking' | 'redacted_thinking' | 'compaction' | 'tool_use' | 'server_tool_use' | 'fallback' }
>

export function readServerResult(state: AnthropicState, block: ServerBlock): void {
  switch (block.type) {
    case 'web_fetch_tool_result':
      return readFetched(state, block)
    case 'web_search_tool_result':
      return readFound(state, block)
    case 'code_execution_tool_result': {
      const { content } = block
      if (content.type === 'code_execution_tool_result_error') emitError(state, block, 'code_execution', content)
      else emitResult(state, block, 'code_execution', { ...content })
      return
    }
    case 'bash_code_execution_tool_result':
    case 'text_editor_code_execution_tool_result':
      return emitResult(state, block, 'code_execution', block.content)
    case 'tool_search_tool_result': {
      const { content } = block
      const name = state.searchTools[block.tool_use_id] ?? 'tool_search_tool_regex'
      if (content.type === 'tool_search_tool_result_error') emitError(state, block, name, content)
      else {
        const found = content.tool_references.map(({ type, tool_name: toolName }) => ({ type, toolName }))
        emitResult(state, block, name, found)
      }
      return
    }
    case 'advisor_tool_result': {
      const { content } = block
      if (content.type === 'advisor_tool_result_error') return emitError(state, block, 'advisor', content)
      const { type, stop_reason: stopReason } = content
      const said = type === 'advisor_result' ? { text: content.text } : { encryptedContent: content.encrypted_content }
      emitResult(state, block, 'advisor', {
        type,
        ...said,
        ...(typeof stopReason === 'string' ? { stopReason } : undefined),
      })
      return
    }
    case 'mcp_tool_use': {
      const { id: toolCallId, name: toolName, server_name: serverName } = block
      const call = (state.mcpCalls[toolCallId] = {
        type: 'tool-call',
        toolCallId,
        toolName,
        input: JSON.stringify(block.input),
        providerExecuted: true,
        dynamic: true,
        providerMetadata: { anthropic: { type: 'mcp-tool-use', serverName } },
      })
      state.emit(call)
      return
    }
    case 'mcp_tool_result': {
      // Throws for a result without its call, as the package does.
      const call = state.mcpCalls[block.tool_use_id]!
      state.emit({
        type: 'tool-result',
        toolCallId: block.tool_use_id,
        toolName: call.toolName,
        isError: block.is_error,
        result: block.content as NonNullable<JSONValue>,
        dynamic: true,
        providerMetadata: call.providerMetadata,
      })
    }
  }
}

interface ResultBlock {
  tool_use_id: string
  caller?: Caller
}

function emitResult({ emit }: AnthropicState, block: ResultBlock, toolName: string, result: unknown): void {
  const toolCallId = block.tool_use_id
  emit({ type: 'tool-result', toolCallId, toolName, result: result as NonNullable<JSONValue>, ...metadataOf(block) })
}

function emitError(
  { emit }: AnthropicState,
  block: ResultBlock,
  toolName: string,
  { type, error_code: errorCode }: { type: string; error_code: string },
): void {
  const toolCallId = block.tool_use_id
  emit({ type: 'tool-result', toolCallId, toolName, isError: true, result: { type, errorCode }, ...metadataOf(block) })
}

function metadataOf({ caller }: ResultBlock): { providerMetadata: SharedV4ProviderMetadata } | undefined {
  const info = callerOf(caller)
  return info && { providerMetadata: { anthropic: { caller: info as unknown as JSONObject } } }
}

function readFetched(state: AnthropicState, block: BlockOf<'web_fetch_tool_result'>): void {
  const { content } = block
  if (content.type === 'web_fetch_tool_result_error') return emitError(state, block, 'web_fetch', content)
  const { type, url, retrieved_at: retrievedAt, content: document } = content
  const { title, citations, source } = document
  const { data, media_type: mediaType } = source
  state.documents.push({ title: title ?? url, mediaType })
  emitResult(state, block, 'web_fetch', {
    type,
    url,
    retrievedAt,
    content: { type: document.type, title, citations, source: { type: source.type, mediaType, data } },
  })
}

function readFound(state: AnthropicState, block: BlockOf<'web_search_tool_result'>): void {
  const { content } = block
  if (!Array.isArray(content)) {
    const { error_code } = content
    return emitError(state, block, 'web_search', { type: 'web_search_tool_result_error', error_code })
  }
  const pages = content.map((page) => ({
    titled: { url: page.url, ...(page.title === null ? undefined : { title: page.title }) },
    pageAge: page.page_age ?? null,
    rest: { encryptedContent: page.encrypted_content, type: page.type },
  }))
  const result = pages.map(({ titled, pageAge, rest }) => ({ ...titled, pageAge, ...rest }))
  emitResult(state, block, 'web_search', result)
  for (const { titled, pageAge } of pages) {
    state.hasSearchResults = true
    const providerMetadata = { anthropic: { pageAge } }
    state.emit({ type: 'source', sourceType: 'url', id: state.generateId(), ...titled, providerMetadata })
  }
}

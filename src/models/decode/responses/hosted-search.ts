/** Searches that OpenAI runs: the web, files, tools. */
import { webSearchTool } from './item-added.ts'
import type { DoneItem } from './item-schema.ts'
import type { State } from './state.ts'

type Item<T extends DoneItem['type']> = Extract<DoneItem, { type: T }>
type Action = Item<'web_search_call'>['action']

export function readDoneSearch(
  state: State,
  index: number,
  item: Item<'web_search_call' | 'file_search_call' | 'tool_search_call' | 'tool_search_output'>,
): void {
  switch (item.type) {
    case 'web_search_call':
      return endWebSearch(state, index, item)
    case 'file_search_call':
      return endFileSearch(state, index, item)
    case 'tool_search_call':
      return endToolSearch(state, index, item)
    case 'tool_search_output':
      return state.emit({
        type: 'tool-result',
        toolCallId: item.call_id ?? state.hostedSearches.shift() ?? item.id,
        toolName: state.toCustomToolName('tool_search'),
        result: { tools: item.tools },
        providerMetadata: { [state.metadataKey]: { itemId: item.id } },
      })
  }
}

function endWebSearch(state: State, index: number, { id, status, action }: Item<'web_search_call'>): void {
  state.calls[index] = undefined
  state.emit({
    type: 'tool-result',
    toolCallId: id,
    toolName: webSearchTool(state),
    ...(status === 'completed' ? { result: webResult(action) } : { isError: true, result: { status } }),
  })
  if (action?.type !== 'search') return
  for (const source of action.sources ?? []) {
    if (source.type !== 'url') continue
    state.hasWebSources = true
    state.emit({ type: 'source', sourceType: 'url', id: state.generateId(), url: source.url })
  }
}

function webResult(action: Action) {
  switch (action?.type) {
    case 'search': {
      const { query, queries, sources } = action
      return {
        action: { type: 'search', query: query ?? undefined, ...(queries && { queries }) },
        ...(sources && { sources }),
      }
    }
    case 'open_page':
      return { action: { type: 'openPage', url: action.url } }
    case 'find_in_page':
      return { action: { type: 'findInPage', url: action.url, pattern: action.pattern } }
    default:
      return {}
  }
}

function endFileSearch(state: State, index: number, { id, queries, results }: Item<'file_search_call'>): void {
  state.calls[index] = undefined
  const found = results?.map(({ attributes, file_id: fileId, filename, score, text }) => ({
    attributes,
    fileId,
    filename,
    score,
    text,
  }))
  state.emit({
    type: 'tool-result',
    toolCallId: id,
    toolName: state.toCustomToolName('file_search'),
    result: { queries, results: found ?? null },
  })
  for (const { fileId, filename } of found ?? []) {
    state.hasFileResults = true
    if (state.retrievedFiles.has(fileId)) continue
    state.retrievedFiles.add(fileId)
    state.emit({
      type: 'source',
      sourceType: 'document',
      id: state.generateId(),
      mediaType: 'text/plain',
      title: filename,
      filename,
      providerMetadata: { [state.metadataKey]: { type: 'file_search', fileId } },
    })
  }
}

function endToolSearch(state: State, index: number, item: Item<'tool_search_call'>): void {
  const open = state.calls[index]
  state.calls[index] = undefined
  if (open === undefined) return
  const { toolName } = open
  const isHosted = item.execution === 'server'
  const id = isHosted ? open.toolCallId : (item.call_id ?? item.id)
  if (isHosted) state.hostedSearches.push(id)
  else state.emit({ type: 'tool-input-start', id, toolName })
  state.emit({ type: 'tool-input-end', id })
  state.emit({
    type: 'tool-call',
    toolCallId: id,
    toolName,
    input: JSON.stringify({ arguments: item.arguments, call_id: isHosted ? null : id }),
    ...(isHosted && { providerExecuted: true }),
    providerMetadata: { [state.metadataKey]: { itemId: item.id } },
  })
}

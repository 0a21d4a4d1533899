/** `response.output_item.added`: a text, a thought or a call begins. */
import type { AddedItem } from './item-schema.ts'
import { startReasoning } from './reasoning.ts'
import { escapeJson, type OpenCall, type State } from './state.ts'

const parallelToolName = 'parallel'

/** Models sometimes call an internal tool that stands for several calls. */
export function isUndeclaredParallel(state: State, toolName: string): boolean {
  return toolName === parallelToolName && !state.functionNames.has(parallelToolName)
}

export function readAddedItem(state: State, index: number, item: AddedItem): void {
  const { emit, toCustomToolName } = state
  const open = (call: OpenCall) => {
    state.calls[index] = call
  }
  switch (item.type) {
    case 'message': {
      const { id, phase } = item
      state.itemIds[index] = id
      state.annotations = []
      state.phase = phase ?? undefined
      const metadata = { itemId: id, ...(phase !== null && phase !== undefined && { phase }) }
      return emit({ type: 'text-start', id, providerMetadata: { [state.metadataKey]: metadata } })
    }
    case 'reasoning':
      return startReasoning(state, index, item)
    case 'function_call': {
      const { name: toolName, call_id: toolCallId, async: isAsync } = item
      const isWithheld = isUndeclaredParallel(state, toolName)
      open({ toolName, toolCallId, isAsync, withheld: isWithheld && [] })
      if (!isWithheld) emit({ type: 'tool-input-start', id: toolCallId, toolName })
      return
    }
    case 'custom_tool_call': {
      const toolName = toCustomToolName(item.name)
      open({ toolName, toolCallId: item.call_id, isAsync: item.async })
      return emit({ type: 'tool-input-start', id: item.call_id, toolName, inputEncoding: 'text' })
    }
    case 'web_search_call': {
      const { id } = item
      const toolName = webSearchTool(state)
      open({ toolName, toolCallId: id })
      emit({ type: 'tool-input-start', id, toolName, providerExecuted: true })
      emit({ type: 'tool-input-end', id })
      return emit({ type: 'tool-call', toolCallId: id, toolName, input: '{}', providerExecuted: true })
    }
    case 'computer_call': {
      const id = item.call_id ?? item.id
      const toolName = toCustomToolName('computer')
      open({ toolName, toolCallId: id })
      return emit({ type: 'tool-input-start', id, toolName })
    }
    case 'code_interpreter_call': {
      const { id, container_id: containerId } = item
      const toolName = toCustomToolName('code_interpreter')
      open({ toolName, toolCallId: id, codeInterpreter: { containerId } })
      emit({ type: 'tool-input-start', id, toolName, providerExecuted: true })
      return emit({ type: 'tool-input-delta', id, delta: `{"containerId":"${containerId}","code":"` })
    }
    case 'file_search_call':
    case 'image_generation_call': {
      const toolName = toCustomToolName(item.type.slice(0, -'_call'.length))
      return emit({ type: 'tool-call', toolCallId: item.id, toolName, input: '{}', providerExecuted: true })
    }
    case 'tool_search_call': {
      const { id } = item
      const toolName = toCustomToolName('tool_search')
      open({ toolName, toolCallId: id })
      if (item.execution === 'server') emit({ type: 'tool-input-start', id, toolName, providerExecuted: true })
      return
    }
    case 'apply_patch_call': {
      const { call_id: id, operation } = item
      const toolName = toCustomToolName('apply_patch')
      const isWhole = operation.type === 'delete_file'
      open({ toolName, toolCallId: id, patch: { hasDiff: isWhole, isEnded: isWhole } })
      emit({ type: 'tool-input-start', id, toolName })
      if (isWhole) {
        emit({ type: 'tool-input-delta', id, delta: JSON.stringify({ callId: id, operation }) })
        return emit({ type: 'tool-input-end', id })
      }
      const head = `"type":"${escapeJson(operation.type)}","path":"${escapeJson(operation.path)}","diff":"`
      return emit({ type: 'tool-input-delta', id, delta: `{"callId":"${escapeJson(id)}","operation":{${head}` })
    }
    case 'shell_call':
      return open({ toolName: toCustomToolName('shell'), toolCallId: item.call_id })
    default:
    // The others are read when they are done.
  }
}

export function webSearchTool(state: State): string {
  return state.toCustomToolName(state.webSearchName ?? 'web_search')
}

/** `response.output_item.done` of tools that OpenAI defines: most of them run there, and their result comes with the event. */
import { readDoneSearch } from './hosted-search.ts'
import { readDonePatch } from './apply-patch.ts'
import { computerInput } from './computer.ts'
import type { DoneItem } from './item-schema.ts'
import { readMcpItem } from './mcp.ts'
import type { State } from './state.ts'

/** All but the user's own tools. */
export type HostedItem = Exclude<
  DoneItem,
  { type: 'message' } | { type: 'reasoning' } | { type: 'function_call' } | { type: 'custom_tool_call' }
>

export function readHostedItem(state: State, index: number, item: HostedItem): void {
  const { emit, toCustomToolName, metadataKey } = state
  const providerMetadata = { [metadataKey]: { itemId: item.id } }
  switch (item.type) {
    case 'program': {
      const { code, fingerprint } = item
      return emit({
        type: 'tool-call',
        toolCallId: item.call_id,
        toolName: toCustomToolName('programmatic_tool_calling'),
        input: JSON.stringify({ code, fingerprint }),
        providerExecuted: true,
        providerMetadata,
      })
    }
    case 'program_output': {
      const { result, status } = item
      return emit({
        type: 'tool-result',
        toolCallId: item.call_id,
        toolName: toCustomToolName('programmatic_tool_calling'),
        result: { result, status },
        providerMetadata,
      })
    }
    case 'web_search_call':
    case 'file_search_call':
    case 'tool_search_call':
    case 'tool_search_output':
      return readDoneSearch(state, index, item)
    case 'mcp_call':
    case 'mcp_approval_request':
    case 'mcp_list_tools':
      state.calls[index] = undefined
      return readMcpItem(state, item)
    case 'apply_patch_call':
      return readDonePatch(state, index, item)
    case 'computer_call': {
      state.calls[index] = undefined
      const { id, call_id: callId, status } = item
      if (callId === null || callId === undefined) {
        const toolName = toCustomToolName('computer_use')
        emit({ type: 'tool-input-end', id })
        emit({ type: 'tool-call', toolCallId: id, toolName, input: '', providerExecuted: true })
        const result = { type: 'computer_use_tool_result', status }
        return emit({ type: 'tool-result', toolCallId: id, toolName, result })
      }
      state.hasFunctionCall = true
      const input = JSON.stringify(computerInput(item))
      emit({ type: 'tool-input-delta', id: callId, delta: input })
      emit({ type: 'tool-input-end', id: callId })
      const toolName = toCustomToolName('computer')
      return emit({ type: 'tool-call', toolCallId: callId, toolName, input, providerMetadata })
    }
    case 'code_interpreter_call': {
      state.calls[index] = undefined
      const toolName = toCustomToolName('code_interpreter')
      return emit({ type: 'tool-result', toolCallId: item.id, toolName, result: { outputs: item.outputs } })
    }
    case 'image_generation_call': {
      const toolName = toCustomToolName('image_generation')
      return emit({ type: 'tool-result', toolCallId: item.id, toolName, result: { result: item.result } })
    }
    case 'local_shell_call': {
      state.calls[index] = undefined
      const { command, timeout_ms: timeoutMs, user, working_directory: workingDirectory, env } = item.action
      return emit({
        type: 'tool-call',
        toolCallId: item.call_id,
        toolName: toCustomToolName('local_shell'),
        input: JSON.stringify({ action: { type: 'exec', command, timeoutMs, user, workingDirectory, env } }),
        providerMetadata,
      })
    }
    case 'shell_call': {
      state.calls[index] = undefined
      const { commands, timeout_ms: timeout, max_output_length: most } = item.action
      const action = { commands, timeoutMs: timeout ?? undefined, maxOutputLength: most ?? undefined }
      return emit({
        type: 'tool-call',
        toolCallId: item.call_id,
        toolName: toCustomToolName('shell'),
        input: JSON.stringify({ action }),
        ...(state.isShellHosted && { providerExecuted: true }),
        providerMetadata,
      })
    }
    case 'shell_call_output': {
      const most = item.max_output_length
      const output = item.output.map(({ stdout, stderr, outcome }) => ({
        stdout,
        stderr,
        outcome: outcome.type === 'exit' ? { type: 'exit', exitCode: outcome.exit_code } : { type: 'timeout' },
      }))
      return emit({
        type: 'tool-result',
        toolCallId: item.call_id,
        toolName: toCustomToolName('shell'),
        result: { ...(most !== null && most !== undefined && { maxOutputLength: most }), output },
      })
    }
    case 'compaction': {
      const metadata = { type: 'compaction', itemId: item.id, encryptedContent: item.encrypted_content }
      return emit({ type: 'custom', kind: 'openai.compaction', providerMetadata: { [metadataKey]: metadata } })
    }
  }
}

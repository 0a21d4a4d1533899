/** The items of Codex that are calls of tools: what they are called with, and what comes of them. */
import { compact } from '../../part/compact.ts'
import { isObject, numberOf, objectOf, textOf } from '../values.ts'

export interface ToolItem {
  toolName: string
  input: object
  result: unknown
  isError: boolean
  isDenied: boolean
}

/** Undefined for an item that is no call. */
export function toTool(item: Record<string, unknown>): ToolItem | undefined {
  const { type, status } = item
  const isDenied = status === 'declined'
  const isError = isDenied || status === 'failed'
  const rest = { isError, isDenied }
  switch (type) {
    case 'command_execution': {
      const exitCode = numberOf(item['exit_code'])
      const result = compact({ output: textOf(item['aggregated_output']) ?? '', exitCode, status })
      const hasFailed = isError || (exitCode !== undefined && exitCode !== 0)
      return { ...rest, toolName: type, input: { command: item['command'] }, result, isError: hasFailed }
    }
    case 'file_change':
      return { ...rest, toolName: type, input: { changes: item['changes'] ?? [] }, result: { status } }
    case 'mcp_tool_call': {
      const { error } = item
      // As Claude Code names them: no provider refuses such a name.
      const toolName = `mcp__${textOf(item['server']) ?? ''}__${textOf(item['tool']) ?? ''}`
      const failure = textOf(objectOf(error)['message']) ?? error
      const result = item['result'] ?? failure ?? { status }
      const input = isObject(item['arguments'])
        ? item['arguments']
        : compact({ arguments: item['arguments'] ?? undefined })
      return { ...rest, toolName, input, result, isError: isError || (error !== undefined && error !== null) }
    }
    case 'web_search': {
      const { query, action } = item
      return { ...rest, toolName: type, input: compact({ query }), result: compact({ query, action }) }
    }
    case 'collab_tool_call': {
      const { id: _, type: __, item_type: ___, status: ____, agents_states: states, ...input } = item
      return { ...rest, toolName: type, input, result: compact({ status, states }) }
    }
    default:
      return undefined
  }
}

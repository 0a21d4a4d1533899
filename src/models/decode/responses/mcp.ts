/** Calls of MCP servers that OpenAI makes, and the approvals that they need. */
import type { DoneItem } from './item-schema.ts'
import type { State } from './state.ts'

type Item = Extract<DoneItem, { type: 'mcp_call' | 'mcp_approval_request' | 'mcp_list_tools' }>

export function readMcpItem(state: State, item: Item): void {
  const { emit } = state
  // The list of a server's tools is nobody's business.
  if (item.type === 'mcp_list_tools') return
  const { id, name, arguments: input } = item
  const toolName = `mcp.${name}`
  if (item.type === 'mcp_approval_request') {
    const toolCallId = state.generateId()
    const approvalId = item.approval_request_id ?? id
    state.askedCalls.set(approvalId, toolCallId)
    emit({ type: 'tool-call', toolCallId, toolName, input, providerExecuted: true, dynamic: true })
    return emit({ type: 'tool-approval-request', approvalId, toolCallId })
  }
  const approval = item.approval_request_id
  // A call that was asked for has the id under which it was.
  const toolCallId =
    approval === null || approval === undefined
      ? id
      : (state.askedCalls.get(approval) ?? state.approvedCalls[approval] ?? id)
  const { output, error } = item
  emit({ type: 'tool-call', toolCallId, toolName, input, providerExecuted: true, dynamic: true })
  emit({
    type: 'tool-result',
    toolCallId,
    toolName,
    result: {
      type: 'call',
      serverLabel: item.server_label,
      name,
      arguments: input,
      ...(output !== null && output !== undefined && { output }),
      ...(error !== null && error !== undefined && { error: error as string }),
    },
    providerMetadata: { [state.metadataKey]: { itemId: id } },
  })
}

/** Lines as Claude Code writes them. */
export const session = { session_id: 's1', parent_tool_use_id: null }
export const init = { type: 'system', subtype: 'init', cwd: '/w', tools: ['Bash'], model: 'claude-x', ...session }

export function stream(event: object, parent: string | null = null): object {
  return { type: 'stream_event', event, ...session, parent_tool_use_id: parent }
}

export function messageStart(id: string, usage: object = {}): object {
  return stream({ type: 'message_start', message: { id, model: 'claude-x', content: [], usage } })
}

export function blockStart(index: number, block: object): object {
  return stream({ type: 'content_block_start', index, content_block: block })
}

export function blockDelta(index: number, delta: object): object {
  return stream({ type: 'content_block_delta', index, delta })
}

export function blockStop(index: number): object {
  return stream({ type: 'content_block_stop', index })
}

export function assistant(id: string, content: object[], more: { parent?: string; usage?: object } = {}): object {
  const { parent = null, usage } = more
  const message = { id, role: 'assistant', model: 'claude-x', content, usage }
  return { type: 'assistant', message, ...session, parent_tool_use_id: parent }
}

export function toolResult(id: string, content: unknown, more: { parent?: string; is_error?: boolean } = {}): object {
  const { parent = null, ...rest } = more
  const message = { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content, ...rest }] }
  return { type: 'user', message, ...session, parent_tool_use_id: parent }
}

export const usage = {
  input_tokens: 3,
  cache_creation_input_tokens: 5,
  cache_read_input_tokens: 7,
  output_tokens: 11,
  output_tokens_details: { thinking_tokens: 2 },
}

export const result = {
  type: 'result',
  subtype: 'success',
  is_error: false,
  result: 'Hi!',
  stop_reason: 'end_turn',
  num_turns: 1,
  duration_ms: 20,
  total_cost_usd: 0.5,
  usage,
  modelUsage: { 'claude-x': { inputTokens: 3, outputTokens: 11, costUSD: 0.5 } },
  permission_denials: [],
  ...session,
}

/** What providers stream, in their four protocols: a signed thought with a call, and a text. */
import type { Protocol } from '../../src/models/testing/recorded-provider.ts'

export const json = (chunks: object[]) => chunks.map((chunk) => JSON.stringify(chunk))
const usage = { input_tokens: 1, output_tokens: 1 }
const item = (type: string, output_index: number, made: object) => ({
  type: `response.output_item.${type}`,
  output_index,
  item: made,
})
const block = (index: number, content_block: object, ...deltas: object[]) => [
  { type: 'content_block_start', index, content_block },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]

/** Thinks, signs it, and calls a tool. */
export function thinksAndCalls(name: string, id = 'call_1', input: object = {}): Record<Protocol, string[]> {
  const written = JSON.stringify(input)
  const call = { type: 'function_call', id: `fc_${id}`, call_id: id, name, arguments: written, status: 'completed' }
  return {
    'openai-chat': json([
      {
        id: 'c',
        choices: [
          {
            index: 0,
            delta: { reasoning: 'Hm', reasoning_details: [{ type: 'reasoning.text', text: 'Hm', signature: 'SIG' }] },
          },
        ],
      },
      {
        id: 'c',
        choices: [
          {
            index: 0,
            delta: {
              tool_calls: [
                {
                  index: 0,
                  id,
                  function: { name, arguments: written },
                  extra_content: { google: { thought_signature: 'SIG' } },
                },
              ],
            },
          },
        ],
      },
      { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
    ]),
    'openai-responses': json([
      { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
      item('added', 0, { type: 'reasoning', id: 'rs', encrypted_content: 'SIG', summary: [] }),
      item('done', 0, { type: 'reasoning', id: 'rs', encrypted_content: 'SIG', summary: [] }),
      item('added', 1, call),
      item('done', 1, call),
      { type: 'response.completed', response: { usage } },
    ]),
    anthropic: json([
      { type: 'message_start', message: { id: 'm', model: 'm', usage } },
      ...block(
        0,
        { type: 'thinking', thinking: '' },
        { type: 'thinking_delta', thinking: 'Hm' },
        { type: 'signature_delta', signature: 'SIG' },
      ),
      ...block(1, { type: 'tool_use', id, name, input: {} }, { type: 'input_json_delta', partial_json: written }),
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage },
      { type: 'message_stop' },
    ]),
    google: json([
      {
        candidates: [
          {
            content: {
              role: 'model',
              parts: [{ functionCall: { id, name, args: input }, thoughtSignature: 'SIG' }],
            },
            finishReason: 'STOP',
          },
        ],
      },
    ]),
  }
}

export const says: Record<Protocol, string[]> = {
  'openai-chat': json([{ id: 'c', choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] }]),
  'openai-responses': json([
    item('done', 0, { type: 'message', id: 'i', content: [{ type: 'output_text', text: 'ok' }] }),
    { type: 'response.completed', response: { usage } },
  ]),
  anthropic: json([
    { type: 'message_start', message: { id: 'm', model: 'm', usage } },
    ...block(0, { type: 'text', text: 'ok' }),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
    { type: 'message_stop' },
  ]),
  google: json([{ candidates: [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP' }] }]),
}

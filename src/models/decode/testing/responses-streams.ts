/** Streams of OpenAI's responses with what the recordings lack: the tools that OpenAI runs or defines. */

const created = { type: 'response.created', response: { id: 'resp', created_at: 1, model: 'm' } }
const added = (output_index: number, item: object) => ({ type: 'response.output_item.added', output_index, item })
const done = (output_index: number, item: object) => ({ type: 'response.output_item.done', output_index, item })
const on = (type: string, output_index: number, item_id: string, rest: object) => ({
  type: `response.${type}`,
  output_index,
  item_id,
  ...rest,
})
const usage = {
  input_tokens: 4,
  output_tokens: 9,
  total_tokens: 13,
  input_tokens_details: { cached_tokens: 1, cache_write_tokens: 2 },
  output_tokens_details: { reasoning_tokens: 3 },
}
const completed = (response: object = {}) => ({
  type: 'response.completed',
  response: { usage, service_tier: 'default', ...response },
})
const item = (type: string, id: string, rest: object = {}) => ({ type, id, ...rest })
const whole = (index: number, made: object, rest: object = {}) => [
  added(index, made),
  done(index, { ...made, ...rest }),
]

const streams: Record<string, object[]> = {
  'reasoning in parts, then a call': [
    created,
    { type: 'response.in_progress', response: { id: 'resp', created_at: 1, model: 'm' } },
    added(0, item('reasoning', 'rs', { encrypted_content: 'enc', summary: [] })),
    on('reasoning_summary_part.added', 0, 'rs', { summary_index: 0 }),
    on('reasoning_summary_text.delta', 0, 'rs', { summary_index: 0, delta: 'Hmm' }),
    on('reasoning_summary_part.done', 0, 'rs', { summary_index: 0 }),
    on('reasoning_summary_part.added', 0, 'rs', { summary_index: 1 }),
    on('reasoning_summary_text.delta', 0, 'rs', { summary_index: 1, delta: ' ½' }),
    on('reasoning_summary_part.done', 0, 'rs', { summary_index: 1 }),
    done(0, item('reasoning', 'rs', { encrypted_content: 'more', summary: [] })),
    added(1, item('function_call', 'fc', { call_id: 'call_1', name: 'get', arguments: '' })),
    on('function_call_arguments.delta', 1, 'fc', { delta: '{"q":' }),
    on('function_call_arguments.delta', 1, 'fc', { delta: '"日本"}' }),
    on('function_call_arguments.done', 1, 'fc', { arguments: '{"q":"日本"}' }),
    done(
      1,
      item('function_call', 'fc', { call_id: 'call_1', name: 'get', arguments: '{"q":"日本"}', status: 'completed' }),
    ),
    completed(),
  ],
  'text with annotations and a refusal': [
    created,
    added(0, item('message', 'msg', { phase: 'final_answer' })),
    on('content_part.added', 0, 'msg', { content_index: 0, part: { type: 'output_text', text: '' } }),
    ...['Grüße', ' 🌍', ' \\ and "'].map((delta) => on('output_text.delta', 0, 'msg', { delta, logprobs: [] })),
    ...[
      { type: 'url_citation', start_index: 0, end_index: 5, url: 'https://example.com/', title: 'Ex' },
      { type: 'file_citation', file_id: 'f', filename: 'f.txt', index: 1 },
      { type: 'container_file_citation', container_id: 'c', file_id: 'g', filename: 'g', start_index: 0, end_index: 1 },
      { type: 'file_path', file_id: 'h', index: 2 },
    ].map((annotation) => ({ type: 'response.output_text.annotation.added', output_index: 0, annotation })),
    on('refusal.delta', 0, 'msg', { delta: 'No' }),
    done(0, item('message', 'msg', { content: [{ type: 'output_text', text: 'Grüße 🌍 \\ and "No' }] })),
    completed({ reasoning: { context: 'auto' } }),
  ],
  searches: [
    created,
    added(0, item('web_search_call', 'ws', { status: 'in_progress' })),
    done(
      0,
      item('web_search_call', 'ws', {
        status: 'completed',
        action: { type: 'search', query: 'q', sources: [{ type: 'url', url: 'https://example.com/' }] },
      }),
    ),
    added(1, item('file_search_call', 'fs')),
    done(
      1,
      item('file_search_call', 'fs', {
        queries: ['q'],
        results: [{ attributes: {}, file_id: 'f', filename: 'f.txt', score: 0.5, text: 't' }],
      }),
    ),
    ...whole(2, item('mcp_list_tools', 'ml', { server_label: 's', tools: [] })),
    added(3, item('mcp_call', 'mc', { status: 'in_progress' })),
    done(
      3,
      item('mcp_call', 'mc', { status: 'completed', arguments: '{}', name: 'echo', server_label: 's', output: 'o' }),
    ),
    completed(),
  ],
  'code, images, shells': [
    created,
    added(
      0,
      item('code_interpreter_call', 'ci', { container_id: 'c', code: '', outputs: null, status: 'in_progress' }),
    ),
    on('code_interpreter_call_code.delta', 0, 'ci', { delta: 'print("hi")' }),
    on('code_interpreter_call_code.done', 0, 'ci', { code: 'print("hi")' }),
    done(
      0,
      item('code_interpreter_call', 'ci', {
        container_id: 'c',
        code: 'print("hi")',
        outputs: [{ type: 'logs', logs: 'hi' }],
      }),
    ),
    added(1, item('image_generation_call', 'ig')),
    on('image_generation_call.partial_image', 1, 'ig', { partial_image_b64: 'AA==' }),
    done(1, item('image_generation_call', 'ig', { result: 'AB==' })),
    completed(),
  ],
  'a tool with a text for its input, compaction': [
    created,
    ...whole(
      2,
      item('custom_tool_call', 'ct', { call_id: 'call_t', name: 'sql', input: 'select 1', status: 'completed' }),
    ),
    ...whole(3, item('compaction', 'cp', { encrypted_content: 'enc' })),
    completed(),
  ],
  'cut by length': [
    created,
    added(0, item('message', 'msg')),
    on('output_text.delta', 0, 'msg', { delta: 'so' }),
    done(0, item('message', 'msg')),
    { type: 'response.incomplete', response: { incomplete_details: { reason: 'max_output_tokens' }, usage } },
  ],
}

export const responsesStreams: Record<string, string[]> = Object.fromEntries(
  Object.entries(streams).map(([name, events]) => [name, events.map((each) => JSON.stringify(each))]),
)

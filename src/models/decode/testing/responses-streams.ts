/** Streams of OpenAI's responses that the recordings lack: tools that OpenAI runs or defines. */

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

const patch = (id: string, operation: object, status = 'completed') =>
  item('apply_patch_call', id, { call_id: `call_${id}`, status, operation })
const use = (recipient_name: string, parameters: object) => ({ recipient_name, parameters })
/** Models sometimes call an internal tool that stands for several calls. */
const parallel = (index: number, uses: unknown) => {
  const call = { call_id: `call_${index}`, name: 'parallel' }
  const text = JSON.stringify(uses)
  return [
    added(index, item('function_call', `fp${index}`, { ...call, arguments: '' })),
    ...[text.slice(0, 9), text.slice(9)].map((delta) =>
      on('function_call_arguments.delta', index, `fp${index}`, { delta }),
    ),
    done(index, item('function_call', `fp${index}`, { ...call, arguments: text, status: 'completed' })),
  ]
}

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
  'shells and programs': [
    created,
    ...whole(
      0,
      item('local_shell_call', 'ls', {
        call_id: 'call_l',
        action: {
          type: 'exec',
          command: ['ls'],
          timeout_ms: 9,
          user: 'u',
          working_directory: '/',
          env: { my_var: '1', B: '2' },
        },
      }),
    ),
    ...whole(
      1,
      item('shell_call', 'sh', {
        call_id: 'call_s',
        status: 'completed',
        action: { commands: ['ls', 'pwd'], timeout_ms: null, max_output_length: 100 },
      }),
    ),
    ...whole(
      2,
      item('shell_call_output', 'so', {
        call_id: 'call_s',
        status: 'completed',
        max_output_length: 100,
        output: [
          { stdout: 'a', stderr: '', outcome: { type: 'exit', exit_code: 0 } },
          { stdout: '', stderr: 'slow', outcome: { type: 'timeout' } },
        ],
      }),
    ),
    ...whole(
      3,
      item('shell_call_output', 'sp', { call_id: 'call_t', status: 'completed', max_output_length: null, output: [] }),
    ),
    ...whole(4, item('program', 'pr', { call_id: 'call_p', code: 'run()', fingerprint: 'fp' })),
    ...whole(5, item('program_output', 'po', { call_id: 'call_p', result: 'ran', status: 'completed' })),
    completed(),
  ],
  patches: [
    created,
    added(0, patch('ap1', { type: 'create_file', path: 'a "quoted" path', diff: '' }, 'in_progress')),
    ...['+one\n', '+"two"', ' ü'].map((delta) =>
      on('apply_patch_call_operation_diff.delta', 0, 'ap1', { delta, obfuscation: 'x' }),
    ),
    on('apply_patch_call_operation_diff.done', 0, 'ap1', { diff: '+one\n+"two" ü' }),
    done(0, patch('ap1', { type: 'create_file', path: 'a "quoted" path', diff: '+one\n+"two" ü' })),
    added(1, patch('ap2', { type: 'update_file', path: 'b', diff: '' }, 'in_progress')),
    done(1, patch('ap2', { type: 'update_file', path: 'b', diff: '-one\n+two' })),
    ...whole(2, patch('ap3', { type: 'delete_file', path: 'c' })),
    added(3, patch('ap4', { type: 'update_file', path: 'd', diff: '' }, 'in_progress')),
    done(3, patch('ap4', { type: 'update_file', path: 'd', diff: 'x' }, 'in_progress')),
    completed(),
  ],
  'a call of an MCP server that a person approved in an earlier turn': [
    created,
    ...whole(
      0,
      item('mcp_call', 'mc', {
        status: 'completed',
        arguments: '{}',
        name: 'x',
        server_label: 's',
        output: null,
        error: { code: 1 },
        approval_request_id: 'a',
      }),
    ),
    completed(),
  ],
  computers: [
    created,
    ...whole(
      0,
      item('computer_call', 'cc1', {
        call_id: 'call_c',
        status: 'completed',
        actions: [
          { type: 'click', button: 'left', x: 1, y: 2, keys: ['SHIFT'] },
          { type: 'double_click', x: 1, y: 2, keys: null },
          { type: 'drag', path: [{ x: 1, y: 2 }] },
          { type: 'keypress', keys: ['a'] },
          { type: 'move', x: 3, y: 4 },
          { type: 'scroll', x: 1, y: 2, scroll_x: 3, scroll_y: 4, keys: [] },
          { type: 'type', text: 'snake_case' },
          { type: 'screenshot' },
          { type: 'wait' },
        ],
        pending_safety_checks: [
          { id: 's', code: 'c', message: null },
          { id: 't', message: 'm' },
        ],
      }),
    ),
    ...whole(
      1,
      item('computer_call', 'cc2', { call_id: 'call_d', status: 'completed', action: { type: 'screenshot' } }),
    ),
    ...whole(2, item('computer_call', 'cc3', { status: 'completed' })),
    completed(),
  ],
  'searches of tools': [
    created,
    ...whole(
      0,
      item('tool_search_call', 'ts1', {
        execution: 'server',
        call_id: null,
        status: 'completed',
        arguments: { paths: ['a'] },
      }),
    ),
    ...whole(
      1,
      item('tool_search_output', 'to1', {
        execution: 'server',
        call_id: null,
        status: 'completed',
        tools: [{ type: 'function', name: 'get', defer_loading: true }],
      }),
    ),
    ...whole(
      2,
      item('tool_search_call', 'ts2', {
        execution: 'client',
        call_id: 'call_q',
        status: 'completed',
        arguments: { query: 'q' },
      }),
    ),
    ...whole(
      3,
      item('tool_search_output', 'to2', { execution: 'client', call_id: 'call_q', status: 'completed', tools: [] }),
    ),
    ...whole(
      4,
      item('tool_search_output', 'to3', { execution: 'server', call_id: null, status: 'completed', tools: [] }),
    ),
    completed(),
  ],
  'one call that stands for several': [
    created,
    ...parallel(0, { tool_uses: [use('functions.lookup', { q: 1 }), use('functions.add', {})] }),
    ...parallel(1, { tool_uses: [use('functions.lookup', { q: 2 }), use('functions.nope', {})] }),
    ...parallel(2, { tool_uses: [] }),
    ...parallel(3, { tool_uses: [1] }),
    ...parallel(4, 'not an object'),
    ...whole(
      5,
      item('function_call', 'fp5', { call_id: 'call_5', name: 'parallel', arguments: '{"a":1}', status: 'completed' }),
    ),
    completed(),
  ],
  'log probabilities': [
    created,
    added(0, item('message', 'msg')),
    ...['so', 'what'].map((delta) =>
      on('output_text.delta', 0, 'msg', { delta, logprobs: [{ token: delta, logprob: -1, top_logprobs: [] }] }),
    ),
    done(0, item('message', 'msg')),
    completed(),
  ],
  'files whose attributes have names of their own': [
    created,
    added(0, item('file_search_call', 'fs')),
    done(
      0,
      item('file_search_call', 'fs', {
        queries: ['q'],
        results: [{ attributes: { my_key: 'v' }, file_id: 'f', filename: 'f.txt', score: 0.5, text: 't' }],
      }),
    ),
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

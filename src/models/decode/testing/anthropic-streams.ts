/** Anthropic streams with everything that the package reads, beside the fixtures. */

const started = (rest: object = {}, usage: object = {}) => ({
  type: 'message_start',
  message: {
    id: 'msg',
    model: 'm',
    role: 'assistant',
    content: [],
    usage: { input_tokens: 7, output_tokens: 1, ...usage },
    ...rest,
  },
})
const start = (index: number, block: object) => ({ type: 'content_block_start', index, content_block: block })
const delta = (index: number, body: object) => ({ type: 'content_block_delta', index, delta: body })
const stop = (index: number) => ({ type: 'content_block_stop', index })
const text = (index: number, said: string) => delta(index, { type: 'text_delta', text: said })
const thought = (index: number, said: string) => delta(index, { type: 'thinking_delta', thinking: said })
const json = (index: number, part: string) => delta(index, { type: 'input_json_delta', partial_json: part })
const cite = (index: number, citation: object) => delta(index, { type: 'citations_delta', citation })
const ended = (reason: string | null, rest: object = {}, usage: object = {}, beside: object = {}) => ({
  type: 'message_delta',
  delta: { stop_reason: reason, stop_sequence: null, ...rest },
  usage: { output_tokens: 21, ...usage },
  ...beside,
})
const over = { type: 'message_stop' }
const ping = { type: 'ping' }
const direct = { type: 'direct' }
const byCode = { type: 'code_execution_20250825', tool_id: 'srv_9' }
const result = (type: string, content: unknown, rest: object = {}) => ({ type, tool_use_id: 'srv_1', content, ...rest })

const page = { cited_text: 'cited', document_index: 0, document_title: null, start_page_number: 1, end_page_number: 2 }
const chars = {
  cited_text: 'cited',
  document_index: 1,
  document_title: 'Own',
  start_char_index: 1,
  end_char_index: 2,
  file_id: 'f',
}
const blocks = {
  cited_text: 'c',
  document_index: 7,
  document_title: null,
  start_block_index: 0,
  end_block_index: 1,
  file_id: null,
}
const web = {
  type: 'web_search_result_location',
  cited_text: 'w',
  url: 'https://example.com/',
  title: null,
  encrypted_index: 'e',
}
const search = {
  type: 'search_result_location',
  cited_text: 's',
  search_result_index: 0,
  source: 'src',
  title: 'T',
  start_block_index: 0,
  end_block_index: 1,
}
const fetchedPage = {
  type: 'web_fetch_result',
  url: 'https://example.com/',
  retrieved_at: null,
  content: {
    type: 'document',
    title: null,
    citations: { enabled: true },
    source: { type: 'text', media_type: 'text/plain', data: 'page' },
  },
}
const foundPage = {
  type: 'web_search_result',
  url: 'https://example.com/',
  title: 'Ex',
  encrypted_content: 'x',
  page_age: '1 day',
}
const iteration = (type: string, rest: object = {}) => ({ type, input_tokens: 5, output_tokens: 6, ...rest })
const code = (content: unknown) => start(3, result('code_execution_tool_result', content))

const streams: Record<string, unknown[]> = {
  'long text and thinking': [
    started({}, { cache_read_input_tokens: 3, cache_creation_input_tokens: 2, service_tier: 'standard' }),
    start(0, { type: 'thinking', thinking: '' }),
    ...['Hmm', ' ½', ' a thought that is longer than a token', '\n"so"'].map((said) => thought(0, said)),
    delta(0, { type: 'signature_delta', signature: 'c2ln' }),
    stop(0),
    ping,
    start(1, { type: 'redacted_thinking', data: 'secret' }),
    delta(1, { type: 'signature_delta', signature: 'lost' }),
    stop(1),
    start(2, { type: 'text', text: '' }),
    ...['Ça', ' va', '', ' 世界 🌍', ' \\ and \t', ' a text that is longer than a token'].map((said) => text(2, said)),
    ping,
    text(2, '.'),
    stop(2),
    ended(
      'end_turn',
      {},
      { input_tokens: 8, output_tokens_details: { thinking_tokens: 4 }, server_tool_use: { web_search_requests: 0 } },
    ),
    over,
  ],
  calls: [
    started({
      content: [{ type: 'tool_use', id: 'tu_0', name: 'get', input: { a: 1 }, caller: byCode }],
      stop_reason: 'tool_use',
    }),
    start(0, { type: 'tool_use', id: 'tu_1', name: 'get', input: {}, caller: direct }),
    json(0, ''),
    json(0, '{"q":"'),
    json(0, '日本'),
    json(0, '\\"'),
    json(0, '"}'),
    stop(0),
    start(1, { type: 'tool_use', id: 'tu_2', name: 'json', input: { given: true } }),
    stop(1),
    start(2, { type: 'tool_use', id: 'tu_3', name: 'get', caller: { type: 'code_execution_20260120', tool_id: 't' } }),
    stop(2),
    text(9, 'text without a block'),
    json(9, 'json without a block'),
    stop(9),
    ended('tool_use'),
    over,
  ],
  'an answer as a tool': [
    started(),
    start(0, { type: 'text', text: '' }),
    text(0, 'Let me '),
    text(0, 'answer'),
    stop(0),
    start(1, { type: 'tool_use', id: 'tu_1', name: 'json', input: {} }),
    json(1, '{"a"'),
    json(1, ':1}'),
    stop(1),
    ended('tool_use'),
    over,
  ],
  'an answer as text': [
    started({ id: null, model: null }),
    start(0, { type: 'text', text: '' }),
    text(0, '{"a":'),
    cite(0, { type: 'char_location', ...chars }),
    text(0, '1}'),
    stop(0),
    ended('stop_sequence', { stop_sequence: '###' }),
    over,
  ],
  citations: [
    started(),
    start(0, { type: 'text', text: '' }),
    text(0, 'See'),
    cite(0, { type: 'page_location', ...page }),
    cite(0, { type: 'char_location', ...chars }),
    cite(0, { type: 'content_block_location', ...blocks }),
    cite(0, search),
    cite(0, web),
    stop(0),
    cite(5, { type: 'page_location', ...page, document_index: 9 }),
    ended('end_turn'),
    over,
  ],
  'web search and fetch': [
    started(),
    start(0, { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: {}, caller: direct }),
    json(0, '{"query":"x"}'),
    stop(0),
    start(
      1,
      result('web_search_tool_result', [foundPage, { ...foundPage, title: null, page_age: null }], { caller: byCode }),
    ),
    stop(1),
    start(
      2,
      result('web_search_tool_result', { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' }),
    ),
    start(3, { type: 'server_tool_use', id: 'srv_2', name: 'web_fetch', input: { url: 'u' } }),
    stop(3),
    start(4, result('web_fetch_tool_result', fetchedPage, { caller: direct })),
    start(
      5,
      result('web_fetch_tool_result', { type: 'web_fetch_tool_result_error', error_code: 'url_not_accessible' }),
    ),
    start(6, { type: 'text', text: '' }),
    cite(6, web),
    cite(6, { type: 'page_location', ...page }),
    stop(6),
    ended('pause_turn'),
    over,
  ],
  'code execution': [
    started(),
    start(0, { type: 'server_tool_use', id: 'srv_1', name: 'bash_code_execution', input: {} }),
    json(0, '{"command":"ls"}'),
    stop(0),
    start(1, { type: 'server_tool_use', id: 'srv_2', name: 'code_execution', input: { code: 'x' } }),
    stop(1),
    start(2, { type: 'server_tool_use', id: 'srv_3', name: 'code_execution' }),
    json(2, '{"code":'),
    json(2, '"y"}'),
    stop(2),
    code({
      type: 'code_execution_result',
      stdout: 'o',
      stderr: '',
      return_code: 0,
      content: [{ type: 'code_execution_output', file_id: 'f' }],
    }),
    code({ type: 'encrypted_code_execution_result', encrypted_stdout: 'o', stderr: '', return_code: 0 }),
    code({ type: 'code_execution_tool_result_error', error_code: 'unavailable' }),
    start(
      4,
      result('bash_code_execution_tool_result', {
        type: 'bash_code_execution_result',
        content: [],
        stdout: '',
        stderr: 'e',
        return_code: 1,
      }),
    ),
    start(5, { type: 'server_tool_use', id: 'srv_4', name: 'text_editor_code_execution', input: { command: 'view' } }),
    stop(5),
    start(
      6,
      result('text_editor_code_execution_tool_result', {
        type: 'text_editor_code_execution_create_result',
        is_file_update: true,
      }),
    ),
    ended('end_turn', {
      container: { expires_at: 'e', id: 'c', skills: [{ type: 'custom', skill_id: 's', version: '1' }] },
    }),
    over,
  ],
  'tool search, advisor, MCP': [
    started({ container: { expires_at: 'e', id: 'c' } }),
    start(0, { type: 'server_tool_use', id: 'srv_1', name: 'tool_search_tool_bm25', input: {} }),
    json(0, '{"query":"x"}'),
    stop(0),
    start(
      1,
      result('tool_search_tool_result', {
        type: 'tool_search_tool_search_result',
        tool_references: [{ type: 'tool_reference', tool_name: 'get' }],
      }),
    ),
    start(2, {
      ...result('tool_search_tool_result', { type: 'tool_search_tool_result_error', error_code: 'no' }),
      tool_use_id: 'other',
    }),
    start(3, { type: 'server_tool_use', id: 'srv_2', name: 'advisor', input: null }),
    stop(3),
    start(4, result('advisor_tool_result', { type: 'advisor_result', text: 'do', stop_reason: 'end_turn' })),
    start(
      5,
      result('advisor_tool_result', { type: 'advisor_redacted_result', encrypted_content: 'x', stop_reason: null }),
    ),
    start(6, result('advisor_tool_result', { type: 'advisor_tool_result_error', error_code: 'no' })),
    start(7, { type: 'server_tool_use', id: 'srv_3', name: 'unknown_tool' }),
    json(7, '{}'),
    stop(7),
    start(8, { type: 'mcp_tool_use', id: 'mcp_1', name: 'echo', input: { a: 1 }, server_name: 'srv' }),
    start(9, {
      type: 'mcp_tool_result',
      tool_use_id: 'mcp_1',
      is_error: false,
      content: ['plain', { type: 'text', text: 'said', citations: [{ any: [1] }] }],
    }),
    start(10, { type: 'fallback', from: { model: 'a' }, to: { model: 'b' } }),
    start(11, { type: 'compaction', content: 'short', signature: 'sig' }),
    stop(11),
    start(12, { type: 'compaction', content: null }),
    delta(12, { type: 'compaction_delta', content: 'summary' }),
    delta(12, { type: 'compaction_delta', content: null }),
    stop(12),
    ended(
      'compaction',
      {
        stop_details: { type: 'refusal', category: 'c', explanation: null, recommended_model: 'm2' },
        safeguard_results: [{ type: 's', status: { type: 'done', tool_uses: { a: { type: 't', outcome: null } } } }],
      },
      {
        service_tier: 'priority',
        cache_read_input_tokens: 1,
        cache_creation_input_tokens: 2,
        iterations: [
          iteration('compaction'),
          iteration('message', { model: 'm', cache_read_input_tokens: 1 }),
          iteration('advisor_message'),
        ],
      },
      {
        input_transformations: [{ type: 't', path: 'p', reason: 'r' }],
        context_management: {
          applied_edits: [
            { type: 'clear_tool_uses_20250919', cleared_tool_uses: 1, cleared_input_tokens: 2 },
            { type: 'clear_thinking_20251015', cleared_thinking_turns: 1, cleared_input_tokens: 2 },
            { type: 'compact_20260112' },
          ],
        },
      },
    ),
    over,
  ],
  'an MCP result without its call': [
    started(),
    start(0, { type: 'mcp_tool_result', tool_use_id: 'none', is_error: true, content: 'x' }),
    over,
  ],
  'a toolset': [
    started(),
    start(0, { type: 'tool_use', id: 'tu', name: 'left_click', toolset_name: 'computer' }),
    over,
  ],
  'two messages': [
    started(),
    start(0, { type: 'text', text: '' }),
    text(0, 'one'),
    stop(0),
    ended('end_turn', {}, { iterations: [iteration('fallback_message'), iteration('message')] }),
    over,
    started({ id: 'second' }),
    start(0, { type: 'text', text: '' }),
    text(0, 'two'),
    started({ id: 'second' }),
    started({ id: 'third' }),
    text(0, 'never'),
    over,
  ],
  'an error first': [ping, { type: 'error', error: { type: 'overloaded_error', message: 'Busy', extra: 1 } }],
  'an error in the middle': [
    started(),
    start(0, { type: 'text', text: '' }),
    text(0, 'so'),
    {
      type: 'error',
      error: { type: 'api_error', message: 'no', code: 7, statusCode: 418, isRetryable: false, data: { a: 1 } },
    },
    { type: 'error', error: { type: 'odd_error', message: 'no' } },
    text(0, 'far'),
  ],
  'only a refusal': [started({ stop_reason: 'refusal' }), ended('model_context_window_exceeded'), over],
  'an unknown event first': [{ type: 'vertex_event' }, started(), over],
}

export const anthropicStreams: Record<string, string[]> = Object.fromEntries(
  Object.entries(streams).map(([name, events]) => [name, events.map((each) => JSON.stringify(each))]),
)

export const anthropicKeys = `
  type index delta content_block message usage error text thinking partial_json signature citation content id name
  input caller toolset_name tool_use_id is_error stop_reason model container skills iterations service_tier
  output_tokens input_tokens stop_details context_management cited_text document_index title file_id data code
  __proto__ constructor toString
`
  .trim()
  .split(/\s+/)

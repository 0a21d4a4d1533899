/** Events of Anthropic's messages for tests. */

export const started = (rest: object = {}, usage: object = {}) => ({
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
export const start = (index: number, block: object) => ({ type: 'content_block_start', index, content_block: block })
export const delta = (index: number, body: object) => ({ type: 'content_block_delta', index, delta: body })
export const stop = (index: number) => ({ type: 'content_block_stop', index })
export const text = (index: number, said: string) => delta(index, { type: 'text_delta', text: said })
export const thought = (index: number, said: string) => delta(index, { type: 'thinking_delta', thinking: said })
export const json = (index: number, part: string) => delta(index, { type: 'input_json_delta', partial_json: part })
export const cite = (index: number, citation: object) => delta(index, { type: 'citations_delta', citation })
export const ended = (reason: string | null, rest: object = {}, usage: object = {}, beside: object = {}) => ({
  type: 'message_delta',
  delta: { stop_reason: reason, stop_sequence: null, ...rest },
  usage: { output_tokens: 21, ...usage },
  ...beside,
})
export const over = { type: 'message_stop' }
export const ping = { type: 'ping' }
export const direct = { type: 'direct' }
export const byCode = { type: 'code_execution_20250825', tool_id: 'srv_9' }
export const result = (type: string, content: unknown, rest: object = {}) => ({
  type,
  tool_use_id: 'srv_1',
  content,
  ...rest,
})

export const page = {
  cited_text: 'cited',
  document_index: 0,
  document_title: null,
  start_page_number: 1,
  end_page_number: 2,
}
export const chars = {
  cited_text: 'cited',
  document_index: 1,
  document_title: 'Own',
  start_char_index: 1,
  end_char_index: 2,
  file_id: 'f',
}
export const blocks = {
  cited_text: 'c',
  document_index: 7,
  document_title: null,
  start_block_index: 0,
  end_block_index: 1,
  file_id: null,
}
export const web = {
  type: 'web_search_result_location',
  cited_text: 'w',
  url: 'https://example.com/',
  title: null,
  encrypted_index: 'e',
}
export const search = {
  type: 'search_result_location',
  cited_text: 's',
  search_result_index: 0,
  source: 'src',
  title: 'T',
  start_block_index: 0,
  end_block_index: 1,
}
export const fetchedPage = {
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
export const foundPage = {
  type: 'web_search_result',
  url: 'https://example.com/',
  title: 'Ex',
  encrypted_content: 'x',
  page_age: '1 day',
}
export const iteration = (type: string, rest: object = {}) => ({ type, input_tokens: 5, output_tokens: 6, ...rest })
export const code = (content: unknown) => start(3, result('code_execution_tool_result', content))

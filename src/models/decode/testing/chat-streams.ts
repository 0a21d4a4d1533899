/** Chat streams with everything that the packages read, in addition to the fixtures. */

const base = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
const choice = (delta: object | null, rest: object = {}) => ({ index: 0, delta, finish_reason: null, ...rest })
const chunk = (delta: object | null, rest: object = {}) => ({ ...base, choices: [choice(delta, rest)] })
const call = (index: number | undefined, rest: object) => chunk({ tool_calls: [{ index, ...rest }] })
const args = (index: number | undefined, text: string) => call(index, { function: { arguments: text } })
const padded = (text: string, pad: string) => ({ ...chunk({ content: text }), obfuscation: pad })
const log = (token: string) => ({
  token,
  logprob: -0.1,
  bytes: [1],
  top_logprobs: [{ token, logprob: -0.1, bytes: null }],
})
const end = (reason: string) => chunk({}, { finish_reason: reason })
const usage = {
  prompt_tokens: 9,
  completion_tokens: 7,
  total_tokens: 16,
  cost: 0.1,
  prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 3, accepted_prediction_tokens: 1, rejected_prediction_tokens: 2 },
}
const cited = { start_index: 0, end_index: 1, url: 'https://example.com/', title: 'Ex' }

const streams: Record<string, unknown[]> = {
  'padded text': [
    chunk({ role: 'assistant', content: '', refusal: null }, { logprobs: null }),
    ...['Grüße', ', ', '"quoted"', ' \\ and \n', ' 世界', ' 🌍', ' a text that is longer than a token'].map((text, i) =>
      padded(text, 'x'.repeat(i)),
    ),
    end('stop'),
    { ...base, choices: [], usage, obfuscation: '' },
  ],
  'refusal with logprobs': [
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'Well' }, { logprobs: { content: [log('Well')], refusal: null } }),
    chunk({ refusal: 'No' }, { logprobs: { content: null, refusal: [log('No')] } }),
    chunk({ content: 'both', refusal: 'too' }, { logprobs: {} }),
    chunk({}, { finish_reason: 'stop', logprobs: { content: [] } }),
    { ...base, choices: [], usage: { prompt_tokens: null } },
  ],
  annotations: [
    chunk({ content: 'See' }),
    chunk({ annotations: [{ type: 'url_citation', url_citation: cited }] }),
    chunk({ content: 'x', annotations: [] }),
    end('content_filter'),
  ],
  'two calls at once': [
    { choices: [], prompt_filter_results: [], created: 0, id: '', model: '' },
    call(0, { id: 'call_a', type: 'function', function: { name: 'add', arguments: '' } }),
    args(0, '{"a":'),
    args(0, '1'),
    call(1, { id: 'call_b', type: 'function', function: { name: 'get', arguments: '{}' } }),
    args(0, '}'),
    args(1, ''),
    chunk({ content: '', tool_calls: [{ index: 0, function: { arguments: ' ' } }] }),
    end('tool_calls'),
    { ...base, choices: [], usage },
  ],
  'a call without an index, with a signature': [
    call(undefined, {
      id: 'call_a',
      function: { name: 'add', arguments: '{"a":1}' },
      extra_content: { google: { thought_signature: 'sig' } },
    }),
    call(undefined, { function: { name: 'add', arguments: '{"a":1}' } }),
    call(3, { function: { arguments: '{"b"' }, extra_content: { google: { thought_signature: 'late' } } }),
    call(3, { id: 'call_c', function: { name: 'get', arguments: ':2}' } }),
    args(3, ' '),
    end('function_call'),
  ],
  'a call without a name': [chunk({ content: 'so' }), args(2, '{"a":'), args(2, '1}'), end('tool_calls')],
  'reasoning in turns': [
    chunk({ role: '', reasoning: 'Hmm' }),
    chunk({ reasoning: ' and' }),
    chunk({ reasoning_content: '', content: 'text' }),
    chunk({ reasoning_content: 'again' }),
    chunk({ reasoning_content: ' more', content: 'and text' }),
    chunk({
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 'deep' }] },
        { type: 'text', text: 'so' },
      ],
    }),
    chunk({ reasoning: 'last', tool_calls: [{ index: 0, id: 'a', function: { name: 'get', arguments: '{}' } }] }),
    chunk({ refusal: false }),
    end('length'),
    { ...base, choices: [], usage: { ...usage, prompt_tokens_details: null } },
  ],
  'usage in every chunk': [
    ...['a', 'b', 'c'].map((content, i) => ({
      ...chunk({ content }),
      usage: { prompt_tokens: 1, completion_tokens: i },
    })),
    { ...end('stop'), usage: null },
  ],
  'an error first': [{ error: { message: 'Too many', type: 'rate_limit_error', code: null, param: null, extra: 1 } }],
  'an error after metadata': [chunk({ role: 'assistant', content: '' }), { error: { message: 'Busy', code: 503 } }],
  'an error in the middle': [
    chunk({ content: 'Hello' }),
    { error: { message: 'Quota', type: 'insufficient_quota', code: 'insufficient_quota' } },
    chunk({ content: ' there' }),
    { error: { message: 'plain' } },
    { error: 'text' },
    { ...chunk({ content: 'with' }), error: null },
    end('stop'),
    { error: { message: 'late', type: 'server_error' } },
  ],
}

export const chatStreams: Record<string, string[]> = Object.fromEntries(
  Object.entries(streams).map(([name, chunks]) => [name, chunks.map((each) => JSON.stringify(each))]),
)

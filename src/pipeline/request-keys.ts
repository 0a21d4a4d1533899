/**
 * Keys of `$input` that every request may have, declared or not: the conversation, the client's tools and the
 * parameters of the OpenAI protocol.
 */
export const requestKeys = [
  'messages',
  'tools',
  'temperature',
  'top_p',
  'max_tokens',
  'max_completion_tokens',
  'stop',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'user',
  'n',
  'logit_bias',
  'metadata',
  'reasoning_effort',
  'response_format',
  'tool_choice',
  'parallel_tool_calls',
  'logprobs',
  'top_logprobs',
  'store',
  'service_tier',
  'modalities',
  'safety_identifier',
  'prompt_cache_key',
  'best_of',
  'echo',
  'suffix',
] as const

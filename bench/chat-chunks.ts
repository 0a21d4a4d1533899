/** What the benchmark's model servers say: chunks of OpenAI's chat protocol, as JSON. */
export const base = {
  id: 'chatcmpl-benchmark0000000000000000',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'bench',
  service_tier: 'default',
  system_fingerprint: 'fp_benchmark0',
}

function choice(delta: object, finish_reason: string | null = null): string {
  return JSON.stringify({ ...base, choices: [{ index: 0, delta, logprobs: null, finish_reason }], usage: null })
}

export const roleChunk = choice({ role: 'assistant', content: '', refusal: null })

export const deltaChunk = (content: string): string => choice({ content })

/** What comes after the deltas, `[DONE]` included. */
export function lastChunks(deltas: number, wantsUsage = true): string[] {
  const usage = { prompt_tokens: 8, completion_tokens: deltas, total_tokens: deltas + 8 }
  const told = wantsUsage ? [JSON.stringify({ ...base, choices: [], usage })] : []
  return [choice({}, 'stop'), ...told, '[DONE]']
}

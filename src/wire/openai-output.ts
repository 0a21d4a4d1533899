/** What the OpenAI wire can say, in order, before it is frames of a stream or one JSON. */
import type { ErrorValue } from '../part/error.ts'
import type { Usage } from '../part/usage.ts'
import type { OpenAiMessage } from './to-openai-messages.ts'

/** How an OpenAI client asked. Everything is optional. */
export interface OpenAiOptions {
  /** What the answer calls its model. Default: the run’s label `model`, else the agent’s id. */
  model?: string
  /** `stream_options.include_usage`: a frame with the usage behind the end, and `usage: null` in all before it. */
  includeUsage?: boolean
  /** `tools`: server-run tools are shown. `trace`: every prompt is. Strict clients break on both. Default: none. */
  extensions?: readonly OpenAiExtension[]
  /** The key of a trace frame. Default `bernard`. */
  traceKey?: string
  /** Output of a tool beyond so many UTF-16 units is cut on the wire. Default 8000. */
  toolOutputMaxChars?: number
  /** Which of the two APIs asked. Default `chat.completion`. */
  object?: 'chat.completion' | 'text_completion'
}
export type OpenAiExtension = 'tools' | 'trace'

/** What every frame of an answer has. `created` in seconds. */
export interface OpenAiHead {
  id: string
  created: number
  model: string
}

export interface OpenAiCall {
  index: number
  id: string
  name: string
  /** JSON text; `''` when it follows in fragments. */
  arguments: string
}

/** One model call, as it is told: a trace for whoever debugs. */
export interface OpenAiPrompt {
  type: 'llm_prompt'
  stage: string
  model: string
  messages: OpenAiMessage[]
}

export type OpenAiFinish = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** Takes an answer in order: `begin`, any of the rest, then `finish` or `fail`. */
export interface OpenAiOutput {
  begin(head: OpenAiHead): void
  text(words: string): void
  reasoning(words: string): void
  call(call: OpenAiCall): void
  callArguments(index: number, fragment: string): void
  toolOutput(id: string, content: string): void
  /** Made only where it is wanted: it holds the whole conversation. */
  prompt(make: () => OpenAiPrompt): void
  finish(reason: OpenAiFinish, usage: Usage): void
  /** A failure, also of what was said so far: nothing of it may look complete. */
  fail(error: ErrorValue): void
}

/** Our token counts under their names; a count that nobody gave is 0 where the protocol wants one, else absent. */
export interface OpenAiUsage {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  prompt_tokens_details?: { cached_tokens: number }
  completion_tokens_details?: { reasoning_tokens: number }
}

export function toOpenAiUsage(usage: Usage): OpenAiUsage {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens, reasoningTokens } = usage
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: usage.totalTokens ?? inputTokens + outputTokens,
    ...(cachedInputTokens === undefined ? undefined : { prompt_tokens_details: { cached_tokens: cachedInputTokens } }),
    ...(reasoningTokens === undefined
      ? undefined
      : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  }
}

/** Those of our codes that OpenAI's clients know by another name. */
const codes: ReadonlyMap<string, string> = new Map([
  ['unauthorized', 'invalid_api_key'],
  ['unknown-agent', 'model_not_found'],
  ['rate-limited', 'rate_limit_exceeded'],
])

export function toOpenAiCode(code: string): string {
  return codes.get(code) ?? code
}

/** What a tool gave, as the protocol has it: text as it is, anything else as JSON, cut behind `max` UTF-16 units. */
export function toToolOutput(result: unknown, max: number): string {
  const text = typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
  if (text.length <= max) return text
  // Half of a surrogate pair is no character, and no UTF-8 either.
  const kept = isHighSurrogate(text.charCodeAt(max - 1)) ? max - 1 : max
  return `${text.slice(0, kept)}… [truncated: ${kept} of ${text.length} characters]`
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

/** The output of the OpenAI wire, before it is encoded as stream frames or one JSON. */
import type { ErrorValue } from '../../part/error.ts'
import type { Role } from '../../part/principal.ts'
import type { ToolRequest } from '../../part/request-part.ts'
import type { ProviderMetadata } from '../../part/model-part.ts'
import type { Usage } from '../../part/usage.ts'
import type { OpenAiMessage } from './to-openai-messages.ts'

/** Options of an OpenAI request. All are optional. */
export interface OpenAiOptions {
  /** The model name in the answer. Default: the run’s label `model`, else the agent’s id. */
  model?: string
  /** `stream_options.include_usage`: a final frame with the usage, and `usage: null` in all others. */
  includeUsage?: boolean
  /** `tools` shows tools that the server runs, `trace` every prompt. Strict clients fail on both. Default: none. */
  extensions?: readonly OpenAiExtension[]
  /** The key of a trace frame. Default `bernard`. */
  traceKey?: string
  /** Maximum length of a tool output in UTF-16 units; longer ones are truncated. Default 8000. */
  toolOutputMaxChars?: number
  /** Which of the two APIs is used. Default `chat.completion`. */
  object?: 'chat.completion' | 'text_completion'
  /** The answer begins anew at this `seq`: the client has the entries before it from an earlier answer. Default 0. */
  from?: number
}
export type OpenAiExtension = 'tools' | 'trace'

/** The fields of every frame. `created` is in seconds. */
export interface OpenAiHead {
  id: string
  created: number
  model: string
}

export interface OpenAiCall {
  index: number
  id: string
  name: string
  /** JSON text; `''` if it follows in fragments. */
  arguments: string
  signed?: Signed | undefined
}

/** Gemini's signature of a call, as its own endpoint for OpenAI clients has it: it must come back with the call. */
export interface Signed {
  extra_content: { google: { thought_signature: string } }
}

/** Under any provider's name: chat endpoints have their own. */
export function signedBy(metadata: ProviderMetadata | undefined): Signed | undefined {
  for (const each of Object.values(metadata ?? {})) {
    const { thoughtSignature: signature } = each
    if (typeof signature === 'string') return { extra_content: { google: { thought_signature: signature } } }
  }
  return undefined
}

/** The prompt of one model call, for traces. */
export interface OpenAiPrompt {
  type: 'llm_prompt'
  stage: string
  model: string
  /** Of a model call of a called agent: the agents that lead to it, the run's own first. */
  agents?: string[]
  messages: OpenAiMessage[]
}

/** The open requests of the answer, for programs: under `millrace` in the finish frame. Names are those of `/api/runs`. */
export interface OpenAiAside {
  runId: string
  threadId: string
  /** Approvals that the run waits for. */
  requests?: ToolRequestBody[]
  /** Approvals that the run waits for, and that need a role which the client does not have. */
  waiting?: WaitingCall[]
  /** Calls that did not run, because this server cannot wait for their approval. */
  denied?: DeniedCall[]
}
/** `agents`: those that lead to it, the run's own first; absent where the run's own agent asks. */
export type ToolRequestBody = Omit<ToolRequest, 'type'> & { agents?: string[] }
export interface WaitingCall {
  toolCallId: string
  toolName: string
  roles: readonly Role[]
  agents?: string[]
}
export interface DeniedCall {
  toolCallId: string
  toolName: string
  reason: string
}

export type OpenAiFinish = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** Receives an answer in order: `begin`, any of the others, then `finish` or `fail`. */
export interface OpenAiOutput {
  begin(head: OpenAiHead): void
  text(words: string): void
  reasoning(words: string): void
  call(call: OpenAiCall): void
  callArguments(index: number, fragment: string, signed?: Signed): void
  toolOutput(id: string, content: string): void
  /** Lazy, because a prompt contains the whole conversation. */
  prompt(make: () => OpenAiPrompt): void
  /** Words that are not the answer, where the answer must be JSON. */
  refusal(words: string): void
  finish(reason: OpenAiFinish, usage: Usage, aside?: OpenAiAside): void
  /** Ends with an error. Nothing sent so far may look complete. */
  fail(error: ErrorValue): void
}

/** Token counts under OpenAI's names. Unknown counts are 0 where the protocol requires a number, else absent. */
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

/** Our error codes that have another name at OpenAI. */
const codes: ReadonlyMap<string, string> = new Map([
  ['unauthorized', 'invalid_api_key'],
  ['unknown-agent', 'model_not_found'],
  ['rate-limited', 'rate_limit_exceeded'],
])

export function toOpenAiCode(code: string): string {
  return codes.get(code) ?? code
}

/** A tool output as text: strings as they are, other values as JSON, truncated after `max` UTF-16 units. */
export function toToolOutput(result: unknown, max: number): string {
  const text = typeof result === 'string' ? result : (JSON.stringify(result) ?? '')
  if (text.length <= max) return text
  // Do not split a surrogate pair.
  const cut = isHighSurrogate(text.charCodeAt(max - 1)) ? max - 1 : max
  return `${text.slice(0, cut)}… [truncated: ${cut} of ${text.length} characters]`
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

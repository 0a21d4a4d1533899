/** The response object of the protocol, and the items of its output. Fields that are not known are null, because clients check that all are there. */
import type { EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import type { CallSettings } from '../../part/part.ts'
import type { Usage } from '../../part/usage.ts'
import { errorText } from '../wire.ts'

/** `in_progress` while it is written; `incomplete` if it was cut off. */
export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

export interface UrlCitation {
  type: 'url_citation'
  url: string
  title: string
  start_index: number
  end_index: number
}
export interface OutputText {
  type: 'output_text'
  text: string
  annotations: UrlCitation[]
  logprobs: []
}
/** Words beside an answer that must be JSON. */
export interface Refusal {
  type: 'refusal'
  refusal: string
}
export interface MessageItem {
  type: 'message'
  id: string
  status: ItemStatus
  role: 'assistant'
  content: (OutputText | Refusal)[]
}
export interface ReasoningItem {
  type: 'reasoning'
  id: string
  status: ItemStatus
  summary: { type: 'summary_text'; text: string }[]
  /** A token of ours, which names the run and the part (`part/reasoning-token.ts`). */
  encrypted_content?: string
}
/** A call for the client. */
export interface FunctionCallItem {
  type: 'function_call'
  id: string
  status: ItemStatus
  call_id: string
  name: string
  /** The client knows the function by both: its namespace and its name there. */
  namespace?: string
  arguments: string
}
/** A call for the client whose input is a text. */
export interface CustomToolCallItem {
  type: 'custom_tool_call'
  id: string
  status: ItemStatus
  call_id: string
  name: string
  namespace?: string
  input: string
}
/** A call that the server ran: no client tries to run it. */
export interface McpCallItem {
  type: 'mcp_call'
  id: string
  status: ItemStatus | 'failed'
  approval_request_id: null
  server_label: string
  name: string
  arguments: string
  output: string | null
  error: string | null
}
/** A call that waits for approval, for clients that ask for it. Its id names the request. */
export interface McpApprovalRequestItem {
  type: 'mcp_approval_request'
  id: string
  server_label: string
  name: string
  arguments: string
}
export type ResponseItem =
  | MessageItem
  | ReasoningItem
  | FunctionCallItem
  | CustomToolCallItem
  | McpCallItem
  | McpApprovalRequestItem

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

/** What the client sent and gets back, as the run's start records it. */
export interface EchoedRequest {
  /** Agents whose approvals the client takes as items. */
  approvals?: string[]
  background?: boolean
  /** `include` asks for the tokens of reasoning. */
  encrypted?: true
  /** How many characters of `$input.instructions` are the field of that name. */
  instructions?: number
  max_output_tokens?: number
  max_tool_calls?: number
  parallel_tool_calls?: boolean
  previous_response_id?: string
  prompt_cache_key?: string
  reasoning?: object
  safety_identifier?: string
  service_tier?: string
  store?: boolean
  text?: object
  tool_choice?: unknown
}

export interface ResponseUsage {
  input_tokens: number
  input_tokens_details: { cached_tokens: number }
  output_tokens: number
  output_tokens_details: { reasoning_tokens: number }
  total_tokens: number
}

export interface ResponseObject {
  id: string
  object: 'response'
  created_at: number
  completed_at: number | null
  status: ResponseStatus
  error: { code: string; message: string } | null
  incomplete_details: { reason: string } | null
  model: string
  output: ResponseItem[]
  usage: ResponseUsage | null
  [echoed: string]: unknown
}

type Fields = Record<string, unknown>

/** What a run's start records of its request. Empty for a run of another protocol. */
export function requestOf(start: EntryOf<'run-start'> | undefined): EchoedRequest {
  const request = start?.protocol === 'responses' ? start.wireOptions?.['request'] : undefined
  return typeof request === 'object' && request !== null ? (request as EchoedRequest) : {}
}

/** The request's fields, with the protocol's defaults. */
export function echoOf(start: EntryOf<'run-start'>, hidesInstructions: boolean): Fields {
  const { input, settings = {}, protocol } = start
  const { instructions = 0, ...given } = requestOf(start)
  const { temperature = 1, topP = 1, presencePenalty = 0, frequencyPenalty = 0 }: CallSettings = settings
  const text = input['instructions']
  return {
    previous_response_id: given.previous_response_id ?? null,
    instructions:
      instructions > 0 && !hidesInstructions && typeof text === 'string' ? text.slice(0, instructions) : null,
    tools: toolsOf(input['tools']),
    tool_choice: given.tool_choice ?? 'auto',
    parallel_tool_calls: given.parallel_tool_calls ?? true,
    text: { format: { type: 'text' }, ...given.text },
    reasoning: given.reasoning ?? null,
    temperature,
    top_p: topP,
    presence_penalty: presencePenalty,
    frequency_penalty: frequencyPenalty,
    top_logprobs: 0,
    truncation: 'disabled',
    max_output_tokens: given.max_output_tokens ?? null,
    max_tool_calls: given.max_tool_calls ?? null,
    store: given.store ?? true,
    background: given.background ?? false,
    service_tier: given.service_tier ?? 'default',
    metadata: protocol === 'responses' ? (input['metadata'] ?? {}) : {},
    safety_identifier: given.safety_identifier ?? null,
    prompt_cache_key: given.prompt_cache_key ?? null,
    user: typeof input['user'] === 'string' ? input['user'] : null,
  }
}

/** Only functions: the protocol's clients check the others against schemas of their own. */
function toolsOf(tools: unknown): object[] {
  if (!Array.isArray(tools)) return []
  return (tools as unknown[]).flatMap((tool): object[] => {
    const { type, name, namespace, description, parameters, strict } = (tool ?? {}) as Fields
    if (type !== 'function' || typeof name !== 'string' || namespace !== undefined) return []
    return [
      {
        type,
        name,
        description: description ?? null,
        parameters: parameters ?? null,
        strict: typeof strict === 'boolean' ? strict : null,
      },
    ]
  })
}

/** Unknown counts are 0. */
export function toResponseUsage(usage: Usage): ResponseUsage {
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, reasoningTokens = 0 } = usage
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: usage.totalTokens ?? inputTokens + outputTokens,
  }
}

/** The words with which providers refuse a prompt that is too long. */
const tooLong = /context[ _-]?(?:length|window)|maximum context|prompt is too long|too many (?:input )?tokens/iu

/**
 * With the codes that clients know. Codex repeats a request after `server_error` and `rate_limit_exceeded`, for which it reads the seconds in the
 * message, and after no other.
 */
export function toResponseError(error: ErrorValue): { code: string; message: string } {
  const { code, status, retryAfter, message } = error
  if (code === 'rate-limited') {
    const wait = retryAfter === undefined ? '' : ` Please try again in ${Math.ceil(retryAfter)}s.`
    return { code: 'rate_limit_exceeded', message: `${message}${wait}` }
  }
  if (code === 'model-refused' && status === 400) {
    return { code: tooLong.test(message) ? 'context_length_exceeded' : 'invalid_prompt', message }
  }
  return { code: 'server_error', message: errorText(error) }
}

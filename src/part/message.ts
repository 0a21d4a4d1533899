/**
 * A conversation as it is sent to models: the JSON-safe subset of the AI SDK's `ModelMessage`, plus an optional `id`.
 * An assistant message that Millrace created has the id of its run.
 */
import type { ProviderMetadata } from './model-part.ts'

/** Provider-specific data of a part, by provider name; sent back to the provider unchanged. */
export type ProviderOptions = ProviderMetadata

/** Text. */
export interface TextContent {
  type: 'text'
  text: string
  providerOptions?: ProviderOptions
}
/** A model's reasoning; sent back to its provider with its signature. */
export interface ReasoningContent {
  type: 'reasoning'
  text: string
  providerOptions?: ProviderOptions
}
/** `data` is base64, a `data:` URL or an http(s) URL. */
export interface FileContent {
  type: 'file'
  mediaType: string
  data: string
  filename?: string
  providerOptions?: ProviderOptions
}
/** Provider-specific content that the provider expects back (V4 `custom`). */
export interface CustomContent {
  type: 'custom'
  kind: `${string}.${string}`
  providerOptions?: ProviderOptions
}
/** A model's tool call; `input` is parsed JSON. */
export interface ToolCallContent {
  type: 'tool-call'
  toolCallId: string
  toolName: string
  input: unknown
  providerExecuted?: boolean
  providerOptions?: ProviderOptions
}
/** The outcome of a tool call, as it is sent to the model. */
export type ToolOutput =
  | { type: 'text'; value: string }
  | { type: 'json'; value: unknown }
  | { type: 'error-text'; value: string }
  | { type: 'error-json'; value: unknown }
  | { type: 'execution-denied'; reason?: string }
/** The outcome of the tool call with this id. */
export interface ToolResultContent {
  type: 'tool-result'
  toolCallId: string
  toolName: string
  output: ToolOutput
  /** Of a result of more than 4 KB: names it in its conversation. */
  handle?: string
  /** `output` has only its beginning and its end. */
  shortened?: true
  providerOptions?: ProviderOptions
}

/** The content of an assistant message. */
export type AssistantContent =
  | TextContent
  | ReasoningContent
  | FileContent
  | CustomContent
  | ToolCallContent
  | ToolResultContent

/** Instructions for the model. */
export type SystemMessage = { role: 'system'; id?: string; content: string; providerOptions?: ProviderOptions }
/** A message of the user: text, or text and files. */
export type UserMessage = {
  role: 'user'
  id?: string
  content: string | (TextContent | FileContent)[]
  providerOptions?: ProviderOptions
}
/**
 * A message of the model. The first one of a run has the run's id. `model`: who made it, if it holds what only that model may be sent back:
 * reasoning, signatures, ids.
 */
export type AssistantMessage = {
  role: 'assistant'
  id?: string
  model?: string
  content: string | AssistantContent[]
  providerOptions?: ProviderOptions
}
/** The outcomes of the tool calls in the previous message. */
export type ToolMessage = {
  role: 'tool'
  id?: string
  content: ToolResultContent[]
  providerOptions?: ProviderOptions
}
/** One message of a conversation. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage

/**
 * A tool as models and clients see it. `inputSchema` is JSON Schema. In the log, `client: true` marks tools that the client runs,
 * and `approval: true` those of them that it must not be asked to run before the call was approved.
 */
export interface ToolSpec {
  name: string
  description?: string
  inputSchema: Record<string, unknown>
  /** Whether the provider must enforce the schema. Default: the provider's own. */
  strict?: boolean
  client?: true
  approval?: true
}

/**
 * The id of a system message that holds for one run alone: its request's instructions. It is the first message of the input and of the prompt, and
 * no later turn of the conversation has it.
 */
export const instructionsId = 'request:instructions'

/** The request's own instructions, and the messages of the conversation. */
export function splitInstructions(messages: readonly Message[]): { lead: Message[]; rest: Message[] } {
  const lead = messages[0]?.role === 'system' && messages[0].id === instructionsId ? 1 : 0
  return { lead: messages.slice(0, lead), rest: messages.slice(lead) }
}

/** The messages of a run's input. */
export function messagesOf(input: Record<string, unknown>): Message[] {
  return Array.isArray(input['messages']) ? (input['messages'] as Message[]) : []
}

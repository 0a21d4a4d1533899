/**
 * A conversation as models are told it: the JSON-safe subset of the AI SDK's `ModelMessage`, plus an optional `id`.
 * An assistant message made by Millrace has the id of the run that made it.
 */
import type { ProviderMetadata } from './part.ts'

/** What a provider wants back with a part, by provider name; handed back as it came. */
export type ProviderOptions = ProviderMetadata

/** Words. */
export interface TextContent {
  type: 'text'
  text: string
  providerOptions?: ProviderOptions
}
/** What a model thought; goes back to its provider with its signature. */
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
/** What a provider gave that only it understands and wants back (V4 `custom`). */
export interface CustomContent {
  type: 'custom'
  kind: `${string}.${string}`
  providerOptions?: ProviderOptions
}
/** A call that a model made; `input` is read JSON. */
export interface ToolCallContent {
  type: 'tool-call'
  toolCallId: string
  toolName: string
  input: unknown
  providerExecuted?: boolean
  providerOptions?: ProviderOptions
}
/** What a tool call came to, as a model is told it. */
export type ToolOutput =
  | { type: 'text'; value: string }
  | { type: 'json'; value: unknown }
  | { type: 'error-text'; value: string }
  | { type: 'error-json'; value: unknown }
  | { type: 'execution-denied'; reason?: string }
/** The outcome of a call, by its id. */
export interface ToolResultContent {
  type: 'tool-result'
  toolCallId: string
  toolName: string
  output: ToolOutput
  providerOptions?: ProviderOptions
}

/** What an assistant message may hold. */
export type AssistantContent =
  | TextContent
  | ReasoningContent
  | FileContent
  | CustomContent
  | ToolCallContent
  | ToolResultContent

/** What a model is told to be. */
export type SystemMessage = { role: 'system'; id?: string; content: string; providerOptions?: ProviderOptions }
/** What a person said: text, or text and files. */
export type UserMessage = {
  role: 'user'
  id?: string
  content: string | (TextContent | FileContent)[]
  providerOptions?: ProviderOptions
}
/** What a model said; its `id` is the run’s, on the first of a run. */
export type AssistantMessage = {
  role: 'assistant'
  id?: string
  content: string | AssistantContent[]
  providerOptions?: ProviderOptions
}
/** The outcomes of the calls in the message before. */
export type ToolMessage = {
  role: 'tool'
  id?: string
  content: ToolResultContent[]
  providerOptions?: ProviderOptions
}
/** One message of a conversation. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage

/** A tool as a model or a client is told it. `inputSchema` is JSON Schema. In the log `client` says whose it is to run. */
export interface ToolSpec {
  name: string
  description?: string
  inputSchema: Record<string, unknown>
  /** Whether the provider is to hold the model to the schema; what it does by itself where nothing is said. */
  strict?: boolean
  client?: true
}

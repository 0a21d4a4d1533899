/**
 * A conversation as models are told it: the JSON-safe subset of the AI SDK's `ModelMessage`, plus an optional `id`.
 * An assistant message made by Millrace has the id of the run that made it.
 */
import type { ProviderMetadata } from './part.ts'

export type ProviderOptions = ProviderMetadata

export interface TextContent {
  type: 'text'
  text: string
  providerOptions?: ProviderOptions
}
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
export interface ToolCallContent {
  type: 'tool-call'
  toolCallId: string
  toolName: string
  input: unknown
  providerExecuted?: boolean
  providerOptions?: ProviderOptions
}
export type ToolOutput =
  | { type: 'text'; value: string }
  | { type: 'json'; value: unknown }
  | { type: 'error-text'; value: string }
  | { type: 'error-json'; value: unknown }
  | { type: 'execution-denied'; reason?: string }
export interface ToolResultContent {
  type: 'tool-result'
  toolCallId: string
  toolName: string
  output: ToolOutput
  providerOptions?: ProviderOptions
}

export type AssistantContent =
  | TextContent
  | ReasoningContent
  | FileContent
  | CustomContent
  | ToolCallContent
  | ToolResultContent

export type SystemMessage = { role: 'system'; id?: string; content: string; providerOptions?: ProviderOptions }
export type UserMessage = {
  role: 'user'
  id?: string
  content: string | (TextContent | FileContent)[]
  providerOptions?: ProviderOptions
}
export type AssistantMessage = {
  role: 'assistant'
  id?: string
  content: string | AssistantContent[]
  providerOptions?: ProviderOptions
}
export type ToolMessage = {
  role: 'tool'
  id?: string
  content: ToolResultContent[]
  providerOptions?: ProviderOptions
}
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage

/** A tool as a model or a client is told it. `inputSchema` is JSON Schema. */
export interface ToolSpec {
  name: string
  description?: string
  inputSchema: Record<string, unknown>
}

/** The parts that models emit: the AI SDK's `LanguageModelV3StreamPart`, member for member, because every provider already emits it. */
import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart, SharedV3ProviderMetadata } from '@ai-sdk/provider'

type V3<T extends LanguageModelV3StreamPart['type']> = Extract<LanguageModelV3StreamPart, { type: T }>
type V4<T extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: T }>

/** Provider-specific data of a part, by provider name. */
export type ProviderMetadata = SharedV3ProviderMetadata
/** Why a model stopped: `unified` is the same for all providers, `raw` is the provider's own value. */
export type FinishReason = V4<'finish'>['finishReason']

/** File contents: base64 text or bytes (V3), or a URL (added in V4). Bytes are stored as base64. */
export type FileData = string | Uint8Array | { type: 'url'; url: string }

/**
 * How a tool call ended if it did not return normally. Absent: it returned (`isError: false`) or threw (`isError: true`).
 * `unavailable`: it had started and its result is lost; it may or may not have run.
 * `handed-over`: the client received the call; its result, if any, arrives with a new run.
 */
export type ToolOutcome = 'denied' | 'aborted' | 'unavailable' | 'handed-over'

interface CallName {
  /** The provider's own id of the call, if a call of another step already has that id. */
  providerCallId?: string
}

interface CallOrigin {
  /** A script makes the call, not a model: it is no part of the conversation. */
  via?: 'script'
}

/**
 * The parts that a model may emit: those of V3 unchanged, with the additions of V4 as optional fields. V4's `ping` is dropped.
 * Text and reasoning ids are made unique in the run. Tool-call ids are the provider's, unless a call of another step already
 * has the id; within a step they may repeat, and are keyed by path.
 */
export type ModelPart =
  /** The model has accepted the request; `warnings` lists unsupported features. */
  | V3<'stream-start'>
  /** The provider's metadata of its response: `id`, `modelId`, `timestamp`. */
  | V3<'response-metadata'>
  /** A text block with this `id` starts. */
  | V3<'text-start'>
  /** `delta`: the next chunk of the text block `id`. */
  | V3<'text-delta'>
  /** The text block `id` is complete; with `citations` if the provider sends them. */
  | (V3<'text-end'> & Pick<V4<'text-end'>, 'citations'>)
  /** A reasoning block with this `id` starts. */
  | V3<'reasoning-start'>
  /** `delta`: the next chunk of the reasoning block `id`. */
  | V3<'reasoning-delta'>
  /** The reasoning block `id` is complete; `providerMetadata` contains the provider's signature. */
  | V3<'reasoning-end'>
  /** The model starts to write the arguments of a tool call: `id`, `toolName`. */
  | (V3<'tool-input-start'> & Pick<V4<'tool-input-start'>, 'inputEncoding'> & CallName)
  /** `delta`: the next chunk of the arguments' JSON. */
  | V3<'tool-input-delta'>
  /** The arguments are complete. */
  | V3<'tool-input-end'>
  /** The model calls a tool: `toolCallId`, `toolName`, `input` (JSON as text); `providerExecuted` when the provider runs it itself. */
  | (V3<'tool-call'> & CallName & CallOrigin)
  /** The outcome of a tool call: `result`, `isError`, `outcome`. Results with `preliminary` come before the final one. */
  | (V3<'tool-result'> & { outcome?: ToolOutcome })
  /** The provider asks for approval to run one of its own tools. */
  | V3<'tool-approval-request'>
  /** A source of the answer: a `url` or a document, with its `title`. */
  | V3<'source'>
  /** A file that the model generated: `mediaType`, `data`. */
  | (Omit<V3<'file'>, 'data'> & { data: FileData })
  /** A file that is part of the model's reasoning. */
  | { type: 'reasoning-file'; mediaType: string; data: FileData; providerMetadata?: ProviderMetadata }
  /** Provider-specific content; `kind` is `provider.name`. */
  | { type: 'custom'; kind: string; providerMetadata?: ProviderMetadata }
  /** The model call is complete: `finishReason`, `usage`. */
  | (Omit<V3<'finish'>, 'finishReason'> & { finishReason: FinishReason })
  /** A raw event of the provider, if requested. */
  | V3<'raw'>
  /** Something failed: `error` with `code` and `message`. */
  | V3<'error'>

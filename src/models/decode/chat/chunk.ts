/** Chunks of OpenAI's chat completions, as far as the decoders read them. */
import { textAt } from '../json-places.ts'
import { isNumberOrNone, isObject, isTextOrNone, type Checked } from '../read-json.ts'
import { compatibleChatSchema } from './chunk-schema.ts'

type Maybe<T> = T | null | undefined

export interface ChatChunk {
  id?: Maybe<string>
  created?: Maybe<number>
  model?: Maybe<string>
  choices: ChatChoice[]
  usage?: Maybe<ChatUsage>
  error?: unknown
}

interface ChatChoice {
  delta?: Maybe<ChatDelta>
  finish_reason?: Maybe<string>
}

export interface ChatDelta {
  content?: Maybe<string | { type: string; [key: string]: unknown }[]>
  refusal?: Maybe<string>
  reasoning_content?: Maybe<string>
  reasoning?: Maybe<string>
  tool_calls?: Maybe<ChatToolCall[]>
}

export interface ChatToolCall {
  index?: Maybe<number>
  id?: Maybe<string>
  type?: Maybe<'function'>
  function: { name?: Maybe<string>; arguments?: Maybe<string> }
  extra_content?: Maybe<{ google?: Maybe<{ thought_signature?: Maybe<string> }> }>
}

export interface ChatUsage {
  prompt_tokens?: Maybe<number>
  completion_tokens?: Maybe<number>
  prompt_tokens_details?: Maybe<{ cached_tokens?: Maybe<number> }>
  completion_tokens_details?: Maybe<{
    reasoning_tokens?: Maybe<number>
    accepted_prediction_tokens?: Maybe<number>
    rejected_prediction_tokens?: Maybe<number>
  }>
}

/** OpenAI pads each chunk with random letters, and gateways pass them on. */
const deltaPlaces = (path: string) => textAt(`choices.0.delta.${path}`, 'obfuscation')
export const contentPlaces = deltaPlaces('content')
export const reasoningContentPlaces = deltaPlaces('reasoning_content')
export const reasoningPlaces = deltaPlaces('reasoning')
export const argumentsPlaces = deltaPlaces('tool_calls.0.function.arguments')

/**
 * What is usual, the schema would accept without changing anything that the decoder reads. Others go through it; it also removes
 * what it does not know.
 */
export function checkCompatibleChunk(chunk: unknown): Checked<ChatChunk> {
  return isUsualCompatibleChunk(chunk) ? { success: true, data: chunk } : compatibleChatSchema().safeParse(chunk)
}

/** The chunks between the first and the last. */
function isUsualCompatibleChunk(chunk: unknown): chunk is ChatChunk {
  return isUsual(chunk, ({ delta }) => {
    if (isNone(delta)) return true
    if (!isObject(delta)) return false
    const { role, content, refusal, reasoning_content: thought, reasoning, tool_calls: calls } = delta
    return (
      (isNone(role) || role === 'assistant' || role === '') &&
      isTextOrNone(content) &&
      isTextOrNone(refusal) &&
      isTextOrNone(thought) &&
      isTextOrNone(reasoning) &&
      areUsual(calls, ({ index, extra_content: extra }) => isNumberOrNone(index) && isNone(extra))
    )
  })
}

function isUsual(chunk: unknown, isUsualChoice: (choice: Record<string, unknown>) => boolean): boolean {
  return (
    isObject(chunk) &&
    isTextOrNone(chunk['id']) &&
    isNumberOrNone(chunk['created']) &&
    isTextOrNone(chunk['model']) &&
    isNone(chunk['usage']) &&
    !('error' in chunk) &&
    Array.isArray(chunk['choices']) &&
    chunk['choices'].every(
      (choice: unknown) => isObject(choice) && isTextOrNone(choice['finish_reason']) && isUsualChoice(choice),
    )
  )
}

function areUsual(calls: unknown, isUsualCall: (call: Record<string, unknown>) => boolean): boolean {
  if (isNone(calls)) return true
  if (!Array.isArray(calls)) return false
  return calls.every((call: unknown) => {
    if (!isObject(call) || !isTextOrNone(call['id']) || !isUsualCall(call)) return false
    const named = call['function']
    return isObject(named) && isTextOrNone(named['name']) && isTextOrNone(named['arguments'])
  })
}

function isNone(value: unknown): value is null | undefined {
  return value === null || value === undefined
}

/** Runs in few words, and what an OpenAI client gets of them. */
import type { Entry, RecordedPart } from '../src/part/entry.ts'
import type { ErrorValue } from '../src/part/error.ts'
import { noUsage, type Usage } from '../src/part/usage.ts'
import { openaiJsonWire, type ChatCompletion, type OpenAiResult } from '../src/wire/openai/openai-completion.ts'
import type { OpenAiOptions } from '../src/wire/openai/openai-output.ts'
import { openaiWire } from '../src/wire/openai/openai.ts'
import { buildRun, startPart, type Item } from './build-run.ts'

export type Json = Record<string, any>

export const at = (step: string, ...parts: RecordedPart[]): Item[] => parts.map((part) => ({ step, part }))
export const start = (more: object = {}): Item[] => at('', { ...startPart, ...more } as RecordedPart)
export const begin = (step: string, stepType: string, more: object = {}): Item[] =>
  at(step, { type: 'step-start', stepType, attempt: 1, ...more })
export const end = (step: string, more: object = {}): Item[] => at(step, { type: 'step-finish', duration: 1, ...more })
export const answerEnd = (finishReason = 'stop', usage: Usage = noUsage): Item[] =>
  at('', { type: 'answer-end', finishReason, usage })
export const runEnd = (more: object = {}): Item[] =>
  at('', { type: 'run-end', outcome: 'completed', usage: noUsage, ...more })
export const say = (step: string, delta: string): Item[] => {
  const id = `${step} ${delta}`
  return at(step, { type: 'text-start', id }, { type: 'text-delta', id, delta }, { type: 'text-end', id })
}
const tools = [
  { name: 'own', inputSchema: {}, client: true as const },
  { name: 'server', inputSchema: {} },
]
/** A model call that was offered both tools, and what it says. */
export const call = (step: string, ...parts: RecordedPart[]): Item[] => [
  ...begin(step, 'model-call'),
  ...at(step, { type: 'prompt', stage: 'response', model: 'test:m', messages: [], tools }, ...parts),
  ...end(step),
]
export const toolCall = (toolCallId: string, toolName: string, input = '{}', more: object = {}): RecordedPart => {
  return { type: 'tool-call', toolCallId, toolName, input, ...more }
}
export const inputs = (id: string, toolName: string, ...deltas: string[]): RecordedPart[] => [
  { type: 'tool-input-start', id, toolName },
  ...deltas.map((delta): RecordedPart => ({ type: 'tool-input-delta', id, delta })),
  { type: 'tool-input-end', id },
]
export const outcome = (toolCallId: string, toolName: string, more: object = {}): RecordedPart => {
  return { type: 'tool-result', toolCallId, toolName, result: 'It is done.', ...more } as RecordedPart
}
export const handedOver = { outcome: 'handed-over', isError: false }
export const handOver = { handOver: true }
export const answering = begin('main/a', 'llm', { answer: true })

export function encode(items: Item[], openai: OpenAiOptions = {}, resumedAt = 0) {
  const encoder = openaiWire.createEncoder({ resumedAt }, openai)
  const body = buildRun(items).map((entry) => encoder.encode(entry))
  const data = body.join('').split('\n\n').slice(0, -1)
  const frames = data.map((frame) => frame.slice('data: '.length)).filter((json) => json !== '[DONE]')
  return { frames: frames.map((json) => JSON.parse(json) as Json), state: encoder.state }
}
export const deltas = (items: Item[], openai?: OpenAiOptions): Json[] =>
  encode(items, openai).frames.flatMap(({ choices = [] }) => (choices as Json[]).map(({ delta }) => delta as Json))
export const callDeltas = (items: Item[], openai?: OpenAiOptions): Json[] =>
  deltas(items, openai).flatMap(({ tool_calls = [] }) => tool_calls as Json[])
export const last = (items: Item[], openai?: OpenAiOptions, resumedAt?: number): Json =>
  encode(items, openai, resumedAt).frames.at(-1)!
export const reason = (items: Item[]): unknown => last(items)['choices']?.[0].finish_reason

/** The answer without streaming. */
export function complete(entries: readonly Entry[], openai: OpenAiOptions = {}, resumedAt = 0): OpenAiResult {
  const encoder = openaiJsonWire.createEncoder({ resumedAt }, openai)
  return entries.flatMap((entry) => encoder.encode(entry))[0]!
}
export const bodyOf = (items: Item[], openai?: OpenAiOptions): Json =>
  (complete(buildRun(items), openai) as { body: ChatCompletion }).body
export const errorOf = (items: Item[], openai?: OpenAiOptions): ErrorValue =>
  (complete(buildRun(items), openai) as { error: ErrorValue }).error

/**
 * The events of OpenAI's responses stream, as `@ai-sdk/openai` accepts them. See `item-schema.ts`.
 *
 * The package tries its 25 choices in turn. Here an event's type picks its choice, with the same outcome; all are only tried for
 * the text of an error.
 */
import { z } from 'zod'
import { isObject, type Checked } from '../read-json.ts'
import { jsonObject } from './item-pieces.ts'
import { addedItem, doneItem, itemTypes } from './item-schema.ts'

const text = z.string()
const maybeText = text.nullish()
const maybeNumber = z.number().nullish()
const diagnostics = z.object({
  type: text,
  reason: maybeText,
  cache_missed_tokens: maybeNumber,
  comparison_reusable_tokens: maybeNumber,
})

const usage = z.intersection(
  jsonObject,
  z.object({
    input_tokens: z.number(),
    input_tokens_details: z
      .intersection(
        jsonObject,
        z.object({
          cached_tokens: maybeNumber,
          cache_write_tokens: maybeNumber,
          cache_write_tokens_details: z
            .intersection(jsonObject, z.object({ ttl_30m_tokens: maybeNumber, ttl_12h_tokens: maybeNumber }))
            .nullish(),
          orchestration_input_tokens: maybeNumber,
          orchestration_input_cached_tokens: maybeNumber,
        }),
      )
      .nullish(),
    output_tokens: z.number(),
    output_tokens_details: z
      .intersection(jsonObject, z.object({ reasoning_tokens: maybeNumber, orchestration_output_tokens: maybeNumber }))
      .nullish(),
    total_tokens: z.number().optional(),
  }),
)
export type Usage = z.infer<typeof usage>

const logprob = { token: text, logprob: z.number() }
const started = z.object({ id: text, created_at: z.number(), model: text, service_tier: maybeText })
const ended = {
  incomplete_details: z.object({ reason: text }).nullish(),
  usage: usage.nullish(),
  reasoning: z.object({ context: maybeText }).nullish(),
  service_tier: maybeText,
}
const item = { item_id: text, output_index: z.number() }
const looseItem = { item_id: text, output_index: z.number().nullish() }

/** In the order in which the package tries them. */
export const known = [
  z.object({
    type: z.literal('response.output_text.delta'),
    ...looseItem,
    delta: text,
    logprobs: z.array(z.object({ ...logprob, top_logprobs: z.array(z.object(logprob)) })).nullish(),
  }),
  z.object({ type: z.literal('response.refusal.delta'), ...looseItem, content_index: maybeNumber, delta: text }),
  z.object({ type: z.literal('response.refusal.done'), ...looseItem, content_index: maybeNumber, refusal: text }),
  z.object({
    type: z.enum(['response.completed', 'response.incomplete']),
    response: z.object({ prompt_cache_diagnostics: diagnostics.nullish(), ...ended }),
  }),
  z.object({
    type: z.literal('response.failed'),
    sequence_number: z.number(),
    response: z.object({
      prompt_cache_diagnostics: diagnostics.nullish(),
      error: z.object({ code: maybeText, message: text }).nullish(),
      ...ended,
    }),
  }),
  z.object({ type: z.literal('response.created'), response: started }),
  z.object({ type: z.literal('response.in_progress'), response: started }),
  z.object({ type: z.literal('response.output_item.added'), output_index: z.number(), item: addedItem }),
  z.object({ type: z.literal('response.output_item.done'), output_index: z.number(), item: doneItem }),
  z.object({ type: z.literal('response.function_call_arguments.delta'), ...item, delta: text }),
  z.object({ type: z.literal('response.function_call_arguments.done'), ...item, arguments: text }),
  z.object({ type: z.literal('response.custom_tool_call_input.delta'), ...item, delta: text }),
  z.object({ type: z.literal('response.image_generation_call.partial_image'), ...item, partial_image_b64: text }),
  z.object({ type: z.literal('response.code_interpreter_call_code.delta'), ...item, delta: text }),
  z.object({ type: z.literal('response.code_interpreter_call_code.done'), ...item, code: text }),
  z.object({
    type: z.literal('response.output_text.annotation.added'),
    annotation: z.discriminatedUnion('type', [
      z.object({
        type: z.literal('url_citation'),
        start_index: z.number(),
        end_index: z.number(),
        url: text,
        title: text,
      }),
      z.object({ type: z.literal('file_citation'), file_id: text, filename: text, index: z.number() }),
      z.object({
        type: z.literal('container_file_citation'),
        container_id: text,
        file_id: text,
        filename: text,
        start_index: z.number(),
        end_index: z.number(),
      }),
      z.object({ type: z.literal('file_path'), file_id: text, index: z.number() }),
    ]),
  }),
  z.object({
    type: z.literal('response.reasoning_summary_part.added'),
    ...looseItem,
    summary_index: z.number(),
  }),
  z.object({
    type: z.literal('response.reasoning_summary_text.delta'),
    ...looseItem,
    summary_index: z.number(),
    delta: text,
  }),
  z.object({ type: z.literal('response.reasoning_summary_part.done'), ...looseItem, summary_index: z.number() }),
  z.object({
    type: z.literal('response.apply_patch_call_operation_diff.delta'),
    ...item,
    delta: text,
    obfuscation: maybeText,
  }),
  z.object({ type: z.literal('response.apply_patch_call_operation_diff.done'), ...item, diff: text }),
  z.object({
    type: z.literal('error'),
    sequence_number: z.number(),
    error: z.object({ type: text, code: maybeText, message: text, param: maybeText }),
  }),
  z.object({ type: z.literal('error'), sequence_number: z.number(), code: maybeText, message: text, param: maybeText }),
] as const
type Known = z.infer<(typeof known)[number]>
export type Chunk = Known | { type: 'unknown_chunk'; message: string }
export type ChunkOf<T extends Chunk['type'], C = Chunk> = C extends { type: infer U }
  ? T extends U
    ? C
    : never
  : never

const byType = new Map<string, z.ZodType<Known>[]>()
for (const schema of known) {
  const { type } = schema.shape
  for (const name of 'value' in type ? [type.value] : type.options) {
    byType.set(name, [...(byType.get(name) ?? []), schema])
  }
}

const every = z.union([
  ...known,
  z
    .object({ type: text })
    .loose()
    .refine((value) => !isKnown(value), { message: 'Known response chunk failed schema validation' })
    .transform((value) => ({ type: 'unknown_chunk' as const, message: value.type })),
])

function isKnown({ type, item }: Record<string, unknown>): boolean {
  if (typeof type !== 'string' || !byType.has(type)) return false
  if (type !== 'response.output_item.added' && type !== 'response.output_item.done') return true
  return !isObject(item) || typeof item['type'] !== 'string' || itemTypes.has(item['type'])
}

export function checkChunk(value: unknown): Checked<Chunk> {
  if (isObject(value) && typeof value['type'] === 'string') {
    const { type } = value
    if (!isKnown(value)) return { success: true, data: { type: 'unknown_chunk', message: type } }
    for (const schema of byType.get(type) ?? []) {
      const checked = schema.safeParse(value)
      if (checked.success) return checked
    }
  }
  return every.safeParse(value)
}

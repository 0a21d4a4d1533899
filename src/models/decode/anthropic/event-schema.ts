/**
 * The events that `@ai-sdk/anthropic` accepts, in its order: its errors name the choices. A copy of its schema, which it does not
 * export (Apache-2.0: see NOTICE). The tests compare both. Used for the few events that are not deltas.
 */
import { z } from 'zod'
import { caller, contentBlock } from './block-schema.ts'

const text = () => z.string().nullish()
const number = () => z.number().nullish()

function citation() {
  const document = { cited_text: z.string(), document_index: z.number(), document_title: z.string().nullable() }
  return z.discriminatedUnion('type', [
    z.object({
      type: z.literal('web_search_result_location'),
      cited_text: z.string(),
      url: z.string(),
      title: z.string().nullable(),
      encrypted_index: z.string(),
    }),
    z.object({
      type: z.literal('page_location'),
      ...document,
      start_page_number: z.number(),
      end_page_number: z.number(),
      file_id: text(),
    }),
    z.object({
      type: z.literal('char_location'),
      ...document,
      start_char_index: z.number(),
      end_char_index: z.number(),
      file_id: text(),
    }),
    z.object({
      type: z.literal('content_block_location'),
      ...document,
      start_block_index: z.number(),
      end_block_index: z.number(),
      file_id: z.string().nullable(),
    }),
    z.object({
      type: z.literal('search_result_location'),
      cited_text: z.string(),
      search_result_index: z.number(),
      source: z.string(),
      title: z.string().nullable(),
      start_block_index: z.number(),
      end_block_index: z.number(),
    }),
  ])
}

const transformations = () => z.array(z.object({ type: z.string(), path: z.string(), reason: z.string() })).nullish()

function message() {
  const call = z.object({
    type: z.literal('tool_use'),
    id: z.string(),
    name: z.string(),
    input: z.unknown(),
    caller: caller(),
    toolset_name: text(),
  })
  return z.object({
    id: text(),
    model: text(),
    role: text(),
    service_tier: text(),
    usage: z.looseObject({
      service_tier: text(),
      input_tokens: z.number(),
      cache_creation_input_tokens: number(),
      cache_read_input_tokens: number(),
    }),
    content: z.array(z.discriminatedUnion('type', [call])).nullish(),
    stop_reason: text(),
    input_transformations: transformations(),
    container: z.object({ expires_at: z.string(), id: z.string() }).nullish(),
  })
}

function delta() {
  return z.discriminatedUnion('type', [
    z.object({ type: z.literal('input_json_delta'), partial_json: z.string() }),
    z.object({ type: z.literal('text_delta'), text: z.string() }),
    z.object({ type: z.literal('thinking_delta'), thinking: z.string() }),
    z.object({ type: z.literal('signature_delta'), signature: z.string() }),
    z.object({ type: z.literal('compaction_delta'), content: text() }),
    z.object({ type: z.literal('citations_delta'), citation: citation() }),
  ])
}

function messageDelta() {
  const use = z.object({ type: z.string(), outcome: text(), explanation: text() })
  const safeguard = z.object({
    type: z.string(),
    status: z.object({ type: z.string(), tool_uses: z.record(z.string(), use).nullish() }),
  })
  const skill = z.object({
    type: z.union([z.literal('anthropic'), z.literal('custom')]),
    skill_id: z.string(),
    version: z.string(),
  })
  return z.object({
    stop_reason: text(),
    stop_sequence: text(),
    stop_details: z
      .object({ type: z.string(), category: text(), explanation: text(), recommended_model: text() })
      .nullish(),
    safeguard_results: z.array(safeguard).nullish(),
    container: z.object({ expires_at: z.string(), id: z.string(), skills: z.array(skill).nullish() }).nullish(),
  })
}

function usage() {
  const kinds = ['compaction', 'message', 'advisor_message', 'fallback_message'] as const
  const iteration = z.object({
    type: z.union(kinds.map((kind) => z.literal(kind))),
    model: text(),
    input_tokens: z.number(),
    output_tokens: z.number(),
    cache_creation_input_tokens: number(),
    cache_read_input_tokens: number(),
  })
  return z.looseObject({
    service_tier: text(),
    input_tokens: number(),
    output_tokens: z.number(),
    output_tokens_details: z.object({ thinking_tokens: number() }).nullish(),
    cache_creation_input_tokens: number(),
    cache_read_input_tokens: number(),
    iterations: z.array(iteration).nullish(),
  })
}

function contextManagement() {
  const edit = z.union([
    z.object({
      type: z.literal('clear_tool_uses_20250919'),
      cleared_tool_uses: z.number(),
      cleared_input_tokens: z.number(),
    }),
    z.object({
      type: z.literal('clear_thinking_20251015'),
      cleared_thinking_turns: z.number(),
      cleared_input_tokens: z.number(),
    }),
    z.object({ type: z.literal('compact_20260112') }),
  ])
  return z.object({ applied_edits: z.array(edit) }).nullish()
}

function event() {
  return z.discriminatedUnion('type', [
    z.object({ type: z.literal('message_start'), message: message() }),
    z.object({ type: z.literal('content_block_start'), index: z.number(), content_block: contentBlock() }),
    z.object({ type: z.literal('content_block_delta'), index: z.number(), delta: delta() }),
    z.object({ type: z.literal('content_block_stop'), index: z.number() }),
    z.object({
      type: z.literal('error'),
      error: z.object({
        type: z.string(),
        message: z.string(),
        code: z.union([z.string(), z.number()]).nullish(),
        statusCode: number(),
        isRetryable: z.boolean().nullish(),
        data: z.unknown().nullish(),
      }),
    }),
    z.object({
      type: z.literal('message_delta'),
      delta: messageDelta(),
      usage: usage(),
      input_transformations: transformations(),
      context_management: contextManagement(),
    }),
    z.object({ type: z.literal('message_stop') }),
    z.object({ type: z.literal('ping') }),
  ])
}

export type AnthropicEvent = z.infer<ReturnType<typeof event>>
export type EventOf<T extends AnthropicEvent['type']> = Extract<AnthropicEvent, { type: T }>
export type Citation = z.infer<ReturnType<typeof citation>>
export type Usage = z.infer<ReturnType<typeof usage>>

let schema: z.ZodType<AnthropicEvent> | undefined
export const anthropicSchema = () => (schema ??= event())

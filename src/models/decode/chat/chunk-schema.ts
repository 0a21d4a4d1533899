/**
 * The chunks that `@ai-sdk/openai-compatible` accepts. A copy of its schema, which it does not export
 * (Apache-2.0: see NOTICE). The tests compare them. Used for unusual chunks only: see `chunk.ts`.
 */
import { z } from 'zod'
import type { ChatChunk } from './chunk.ts'

const text = () => z.string().nullish()
const number = () => z.number().nullish()

const errorChunk = () =>
  z.object({
    error: z.object({
      message: z.string(),
      type: text(),
      param: z.any().nullish(),
      code: z.union([z.string(), z.number()]).nullish(),
    }),
  })

const named = () => z.object({ name: text(), arguments: text() })

function createCompatible() {
  const google = z.object({ thought_signature: text() }).nullish()
  const calls = z.array(
    z.object({
      index: number(),
      id: text(),
      function: named(),
      extra_content: z.object({ google }).nullish(),
    }),
  )
  const delta = z.object({
    role: z.enum(['assistant', '']).nullish(),
    content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
    refusal: z
      .unknown()
      .nullish()
      .transform((value) => (typeof value === 'string' ? value : undefined)),
    reasoning_content: text(),
    reasoning: text(),
    tool_calls: calls.nullish(),
  })
  const usage = z.looseObject({
    prompt_tokens: number(),
    completion_tokens: number(),
    total_tokens: number(),
    prompt_tokens_details: z.looseObject({ cached_tokens: number() }).nullish(),
    completion_tokens_details: z
      .looseObject({
        reasoning_tokens: number(),
        accepted_prediction_tokens: number(),
        rejected_prediction_tokens: number(),
      })
      .nullish(),
  })
  const chunk = z.looseObject({
    id: text(),
    created: number(),
    model: text(),
    choices: z.array(z.object({ delta: delta.nullish(), finish_reason: text() })),
    usage: usage.nullish(),
  })
  return z.union([chunk, errorChunk()]) as unknown as z.ZodType<ChatChunk>
}

// Made when first needed: most answers never need them.
let compatible: z.ZodType<ChatChunk> | undefined

export const compatibleChatSchema = () => (compatible ??= createCompatible())

/** What OpenResponses demands of a response and of its events, in zod: every field is there, and no item is of an unknown type. */
import * as z from 'zod'

const nullable = <T extends z.ZodType>(type: T) => type.nullable()
const status = z.enum(['in_progress', 'completed', 'incomplete'])
const outputText = z.object({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(z.object({ type: z.literal('url_citation') }).loose()),
  logprobs: z.array(z.unknown()),
})
const message = z.object({
  type: z.literal('message'),
  id: z.string().min(1),
  status,
  role: z.literal('assistant'),
  content: z.array(z.union([outputText, z.object({ type: z.literal('refusal'), refusal: z.string() })])),
})
const functionCall = z.object({
  type: z.literal('function_call'),
  id: z.string().min(1),
  call_id: z.string().min(1),
  name: z.string().min(1),
  arguments: z.string(),
  status,
})
const reasoning = z.object({
  type: z.literal('reasoning'),
  id: z.string().min(1),
  summary: z.array(z.object({ type: z.literal('summary_text'), text: z.string() })),
})
const item = z.union([message, functionCall, reasoning])
const functionTool = z.object({
  type: z.literal('function'),
  name: z.string(),
  description: nullable(z.string()),
  parameters: nullable(z.record(z.string(), z.unknown())),
  strict: nullable(z.boolean()),
})
const whole = z.number().int().nonnegative()
const usage = z.object({
  input_tokens: whole,
  output_tokens: whole,
  total_tokens: whole,
  input_tokens_details: z.object({ cached_tokens: whole }),
  output_tokens_details: z.object({ reasoning_tokens: whole }),
})

export const responseSchema = z.object({
  id: z.string().min(1),
  object: z.literal('response'),
  created_at: whole,
  completed_at: nullable(whole),
  status: z.enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled']),
  incomplete_details: nullable(z.object({ reason: z.string() })),
  model: z.string(),
  previous_response_id: nullable(z.string()),
  instructions: nullable(z.string()),
  output: z.array(item),
  error: nullable(z.object({ code: z.string(), message: z.string() })),
  tools: z.array(functionTool),
  tool_choice: z.union([z.enum(['none', 'auto', 'required']), z.object({ type: z.string() }).loose()]),
  truncation: z.enum(['auto', 'disabled']),
  parallel_tool_calls: z.boolean(),
  text: z.object({ format: z.object({ type: z.enum(['text', 'json_object', 'json_schema']) }).loose() }).loose(),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: whole,
  temperature: z.number(),
  reasoning: nullable(z.object({}).loose()),
  usage: nullable(usage),
  max_output_tokens: nullable(whole),
  max_tool_calls: nullable(whole),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.record(z.string(), z.unknown()),
  safety_identifier: nullable(z.string()),
  prompt_cache_key: nullable(z.string()),
})
export type CheckedResponse = z.infer<typeof responseSchema>

const number = { sequence_number: whole }
const at = { ...number, item_id: z.string(), output_index: whole }
const part = { ...at, content_index: whole }
const event = <Name extends string>(type: Name, fields: z.ZodRawShape) => z.object({ type: z.literal(type), ...fields })

export const eventSchema = z.union([
  ...['created', 'queued', 'in_progress', 'completed', 'incomplete', 'failed'].map((name) =>
    event(`response.${name}`, { ...number, response: responseSchema }),
  ),
  event('response.output_item.added', { ...number, output_index: whole, item }),
  event('response.output_item.done', { ...number, output_index: whole, item }),
  event('response.content_part.added', {
    ...part,
    part: z.union([outputText, z.object({ type: z.literal('refusal') }).loose()]),
  }),
  event('response.content_part.done', {
    ...part,
    part: z.union([outputText, z.object({ type: z.literal('refusal') }).loose()]),
  }),
  event('response.output_text.delta', { ...part, delta: z.string(), logprobs: z.array(z.unknown()) }),
  event('response.output_text.done', { ...part, text: z.string(), logprobs: z.array(z.unknown()) }),
  event('response.function_call_arguments.delta', { ...at, delta: z.string() }),
  event('response.function_call_arguments.done', { ...at, arguments: z.string() }),
  event('response.reasoning_summary_part.added', {
    ...at,
    summary_index: whole,
    part: z.object({ type: z.literal('summary_text'), text: z.string() }),
  }),
  event('response.reasoning_summary_part.done', {
    ...at,
    summary_index: whole,
    part: z.object({ type: z.literal('summary_text'), text: z.string() }),
  }),
  event('response.reasoning_summary_text.delta', { ...at, summary_index: whole, delta: z.string() }),
  event('response.reasoning_summary_text.done', { ...at, summary_index: whole, text: z.string() }),
])

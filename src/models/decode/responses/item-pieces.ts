/** What several output items of OpenAI's responses stream have in common. See `item-schema.ts`. */
import { z } from 'zod'

export const text = z.string()
export const maybeText = text.nullish()
const maybeNumber = z.number().nullish()
export const maybeFlag = z.boolean().nullish()
const keys = z.array(text).nullish()
export const progress = z.enum(['in_progress', 'completed', 'incomplete'])
const place = { x: z.number(), y: z.number() }

type Json = string | number | boolean | null | Json[] | { [key: string]: Json | undefined }
const jsonValue: z.ZodType<Json> = z.lazy(() =>
  z.union([text, z.number(), z.boolean(), z.null(), z.array(jsonValue), z.record(text, jsonValue.optional())]),
)
export const jsonObject = z.record(text, jsonValue.optional())

const computerAction = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('click'),
    button: z.enum(['left', 'right', 'wheel', 'back', 'forward']),
    ...place,
    keys,
  }),
  z.object({ type: z.literal('double_click'), ...place, keys }),
  z.object({ type: z.literal('drag'), path: z.array(z.object(place)), keys }),
  z.object({ type: z.literal('keypress'), keys: z.array(text) }),
  z.object({ type: z.literal('move'), ...place, keys }),
  z.object({ type: z.literal('screenshot') }),
  z.object({ type: z.literal('scroll'), ...place, scroll_x: z.number(), scroll_y: z.number(), keys }),
  z.object({ type: z.literal('type'), text }),
  z.object({ type: z.literal('wait') }),
])
export const computerCall = z.object({
  type: z.literal('computer_call'),
  id: text,
  call_id: maybeText,
  status: progress,
  action: computerAction.nullish(),
  actions: z.array(computerAction).nullish(),
  pending_safety_checks: z.array(z.object({ id: text, code: maybeText, message: maybeText })).nullish(),
})

export const caller = z.discriminatedUnion('type', [
  z.object({ type: z.literal('direct') }),
  z.object({ type: z.literal('program'), caller_id: text }),
])
export const program = z.object({ type: z.literal('program'), id: text, call_id: text, code: text, fingerprint: text })
export const programOutput = z.object({
  type: z.literal('program_output'),
  id: text,
  call_id: text,
  result: text,
  status: z.enum(['completed', 'incomplete']),
})
export const localShellCall = z.object({
  type: z.literal('local_shell_call'),
  id: text,
  call_id: text,
  action: z.object({
    type: z.literal('exec'),
    command: z.array(text),
    timeout_ms: z.number().optional(),
    user: text.optional(),
    working_directory: text.optional(),
    env: z.record(text, text).optional(),
  }),
})

export const message = z.object({
  type: z.literal('message'),
  id: text,
  phase: z.enum(['commentary', 'final_answer']).nullish(),
})
export const reasoning = z.object({ type: z.literal('reasoning'), id: text, encrypted_content: maybeText })
export const interpreterOutputs = z
  .array(
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('logs'), logs: text }),
      z.object({ type: z.literal('image'), url: text }),
    ]),
  )
  .nullable()
export const applyPatchCall = z.object({
  type: z.literal('apply_patch_call'),
  id: text,
  call_id: text,
  status: z.enum(['in_progress', 'completed']),
  operation: z.discriminatedUnion('type', [
    z.object({ type: z.literal('create_file'), path: text, diff: text }),
    z.object({ type: z.literal('delete_file'), path: text }),
    z.object({ type: z.literal('update_file'), path: text, diff: text }),
  ]),
})
export const shellCall = z.object({
  type: z.literal('shell_call'),
  id: text,
  call_id: text,
  status: progress,
  action: z.object({ commands: z.array(text), timeout_ms: maybeNumber, max_output_length: maybeNumber }),
})
export const shellCallOutput = z.object({
  type: z.literal('shell_call_output'),
  id: text,
  call_id: text,
  status: progress,
  max_output_length: maybeNumber,
  output: z.array(
    z.object({
      stdout: text,
      stderr: text,
      outcome: z.discriminatedUnion('type', [
        z.object({ type: z.literal('timeout') }),
        z.object({ type: z.literal('exit'), exit_code: z.number() }),
      ]),
    }),
  ),
})
const search = { id: text, execution: z.enum(['server', 'client']), call_id: text.nullable(), status: progress }
export const toolSearchCall = z.object({ type: z.literal('tool_search_call'), ...search, arguments: z.unknown() })
export const toolSearchOutput = z.object({
  type: z.literal('tool_search_output'),
  ...search,
  tools: z.array(jsonObject),
})

export const call = { id: text, call_id: text, name: text }
export const mcpError = z.union([
  text,
  z.object({ type: text.optional(), code: z.union([z.number(), text]).optional(), message: text.optional() }).loose(),
])

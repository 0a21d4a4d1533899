/**
 * The output items of OpenAI's responses stream, as `@ai-sdk/openai` accepts them. Copies of its schemas, which it does not export
 * (Apache-2.0: see NOTICE): the order of the choices and of the fields is part of the text of its errors. The tests compare both.
 */
import { z } from 'zod'
import {
  applyPatchCall,
  call,
  caller,
  computerCall,
  interpreterOutputs,
  localShellCall,
  maybeFlag,
  maybeText,
  mcpError,
  message,
  program,
  programOutput,
  progress,
  reasoning,
  shellCall,
  shellCallOutput,
  text,
  toolSearchCall,
  toolSearchOutput,
} from './item-pieces.ts'

export const addedItem = z.discriminatedUnion('type', [
  message,
  reasoning,
  z.object({
    type: z.literal('function_call'),
    ...call,
    arguments: text,
    async: maybeFlag,
    namespace: maybeText,
    caller: caller.nullish(),
  }),
  program,
  programOutput,
  z.object({ type: z.literal('web_search_call'), id: text, status: text }),
  computerCall,
  z.object({ type: z.literal('file_search_call'), id: text }),
  localShellCall,
  z.object({ type: z.literal('image_generation_call'), id: text }),
  z.object({
    type: z.literal('code_interpreter_call'),
    id: text,
    container_id: text,
    code: text.nullable(),
    outputs: interpreterOutputs,
    status: text,
  }),
  z.object({ type: z.literal('mcp_call'), id: text, status: text, approval_request_id: maybeText }),
  z.object({ type: z.literal('mcp_list_tools'), id: text }),
  z.object({ type: z.literal('mcp_approval_request'), id: text }),
  applyPatchCall,
  z.object({ type: z.literal('custom_tool_call'), ...call, input: text, async: maybeFlag }),
  shellCall,
  z.object({ type: z.literal('compaction'), id: text, encrypted_content: maybeText }),
  shellCallOutput,
  toolSearchCall,
  toolSearchOutput,
])
export type AddedItem = z.infer<typeof addedItem>

export const doneItem = z.discriminatedUnion('type', [
  message,
  reasoning,
  z.object({
    type: z.literal('function_call'),
    ...call,
    arguments: text,
    async: maybeFlag,
    status: progress,
    namespace: maybeText,
    caller: caller.nullish(),
  }),
  program,
  programOutput,
  z.object({
    type: z.literal('custom_tool_call'),
    ...call,
    input: text,
    async: maybeFlag,
    status: z.literal('completed'),
  }),
  z.object({
    type: z.literal('code_interpreter_call'),
    id: text,
    code: text.nullable(),
    container_id: text,
    outputs: interpreterOutputs,
  }),
  z.object({ type: z.literal('image_generation_call'), id: text, result: text }),
  z.object({
    type: z.literal('web_search_call'),
    id: text,
    status: text,
    action: z
      .discriminatedUnion('type', [
        z.object({
          type: z.literal('search'),
          query: maybeText,
          queries: z.array(text).nullish(),
          sources: z
            .array(
              z.discriminatedUnion('type', [
                z.object({ type: z.literal('url'), url: text }),
                z.object({ type: z.literal('api'), name: text }),
              ]),
            )
            .nullish(),
        }),
        z.object({ type: z.literal('open_page'), url: maybeText }),
        z.object({ type: z.literal('find_in_page'), url: maybeText, pattern: maybeText }),
      ])
      .nullish(),
  }),
  z.object({
    type: z.literal('file_search_call'),
    id: text,
    queries: z.array(text),
    results: z
      .array(
        z.object({
          attributes: z.record(text, z.union([text, z.number(), z.boolean()])),
          file_id: text,
          filename: text,
          score: z.number(),
          text,
        }),
      )
      .nullish(),
  }),
  localShellCall,
  computerCall,
  z.object({
    type: z.literal('mcp_call'),
    id: text,
    status: text,
    arguments: text,
    name: text,
    server_label: text,
    output: maybeText,
    error: mcpError.nullish(),
    approval_request_id: maybeText,
  }),
  z.object({
    type: z.literal('mcp_list_tools'),
    id: text,
    server_label: text,
    tools: z.array(
      z.object({
        name: text,
        description: text.optional(),
        input_schema: z.any(),
        annotations: z.record(text, z.unknown()).optional(),
      }),
    ),
    error: mcpError.optional(),
  }),
  z.object({
    type: z.literal('mcp_approval_request'),
    id: text,
    server_label: text,
    name: text,
    arguments: text,
    approval_request_id: text.optional(),
  }),
  applyPatchCall,
  shellCall,
  z.object({ type: z.literal('compaction'), id: text, encrypted_content: text }),
  shellCallOutput,
  toolSearchCall,
  toolSearchOutput,
])
export type DoneItem = z.infer<typeof doneItem>

/** The types of items that both lists know. An item of another type is skipped, not refused. */
export const itemTypes: ReadonlySet<string> = new Set(addedItem.options.map(({ shape }) => shape.type.value))

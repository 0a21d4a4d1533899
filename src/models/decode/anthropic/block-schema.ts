/** The starts of content blocks that `@ai-sdk/anthropic` accepts. See `event-schema.ts`. */
import { z } from 'zod'

const text = () => z.string().nullish()
const numberOrNull = () => z.number().nullable()

/** From which tool a call came. */
export const caller = () =>
  z
    .union([
      z.object({ type: z.literal('code_execution_20250825'), tool_id: z.string() }),
      z.object({ type: z.literal('code_execution_20260120'), tool_id: z.string() }),
      z.object({ type: z.literal('direct') }),
    ])
    .optional()

function mcpContent() {
  const citations = z.array(z.json()).nullable().optional()
  const item = z.union([z.string(), z.object({ type: z.literal('text'), text: z.string(), citations })])
  return z.union([z.string(), z.array(item)])
}

function fetched() {
  const source = z.union([
    z.object({ type: z.literal('base64'), media_type: z.literal('application/pdf'), data: z.string() }),
    z.object({ type: z.literal('text'), media_type: z.literal('text/plain'), data: z.string() }),
  ])
  const content = z.object({
    type: z.literal('document'),
    title: z.string().nullable(),
    citations: z.object({ enabled: z.boolean() }).optional(),
    source,
  })
  return z.union([
    z.object({
      type: z.literal('web_fetch_result'),
      url: z.string(),
      retrieved_at: z.string().nullable(),
      content,
    }),
    z.object({ type: z.literal('web_fetch_tool_result_error'), error_code: z.string() }),
  ])
}

function found() {
  const result = z.object({
    type: z.literal('web_search_result'),
    url: z.string(),
    title: z.string().nullable(),
    encrypted_content: z.string(),
    page_age: text(),
  })
  const error = z.object({ type: z.literal('web_search_tool_result_error'), error_code: z.string() })
  return z.union([z.array(result), error])
}

function executed() {
  const files = () =>
    z
      .array(z.object({ type: z.literal('code_execution_output'), file_id: z.string() }))
      .optional()
      .default([])
  return z.union([
    z.object({
      type: z.literal('code_execution_result'),
      stdout: z.string(),
      stderr: z.string(),
      return_code: z.number(),
      content: files(),
    }),
    z.object({
      type: z.literal('encrypted_code_execution_result'),
      encrypted_stdout: z.string(),
      stderr: z.string(),
      return_code: z.number(),
      content: files(),
    }),
    z.object({ type: z.literal('code_execution_tool_result_error'), error_code: z.string() }),
  ])
}

function executedInBash() {
  const output = z.object({ type: z.literal('bash_code_execution_output'), file_id: z.string() })
  return z.discriminatedUnion('type', [
    z.object({
      type: z.literal('bash_code_execution_result'),
      content: z.array(output),
      stdout: z.string(),
      stderr: z.string(),
      return_code: z.number(),
    }),
    z.object({ type: z.literal('bash_code_execution_tool_result_error'), error_code: z.string() }),
  ])
}

function edited() {
  return z.discriminatedUnion('type', [
    z.object({ type: z.literal('text_editor_code_execution_tool_result_error'), error_code: z.string() }),
    z.object({
      type: z.literal('text_editor_code_execution_view_result'),
      content: z.string(),
      file_type: z.string(),
      num_lines: numberOrNull(),
      start_line: numberOrNull(),
      total_lines: numberOrNull(),
    }),
    z.object({ type: z.literal('text_editor_code_execution_create_result'), is_file_update: z.boolean() }),
    z.object({
      type: z.literal('text_editor_code_execution_str_replace_result'),
      lines: z.array(z.string()).nullable(),
      new_lines: numberOrNull(),
      new_start: numberOrNull(),
      old_lines: numberOrNull(),
      old_start: numberOrNull(),
    }),
  ])
}

function toolsFound() {
  const reference = z.object({ type: z.literal('tool_reference'), tool_name: z.string() })
  return z.union([
    z.object({ type: z.literal('tool_search_tool_search_result'), tool_references: z.array(reference) }),
    z.object({ type: z.literal('tool_search_tool_result_error'), error_code: z.string() }),
  ])
}

function advised() {
  return z.discriminatedUnion('type', [
    z.object({ type: z.literal('advisor_result'), text: z.string(), stop_reason: text() }),
    z.object({ type: z.literal('advisor_redacted_result'), encrypted_content: z.string(), stop_reason: text() }),
    z.object({ type: z.literal('advisor_tool_result_error'), error_code: z.string() }),
  ])
}

export function contentBlock() {
  const input = () => z.record(z.string(), z.unknown())
  const result = { tool_use_id: z.string() }
  const model = () => z.object({ model: z.string() })
  return z.discriminatedUnion('type', [
    z.object({ type: z.literal('text'), text: z.string() }),
    z.object({ type: z.literal('thinking'), thinking: z.string() }),
    z.object({
      type: z.literal('tool_use'),
      id: z.string(),
      name: z.string(),
      input: input().optional(),
      caller: caller(),
      toolset_name: text(),
    }),
    z.object({ type: z.literal('redacted_thinking'), data: z.string() }),
    z.object({ type: z.literal('compaction'), content: text(), signature: text() }),
    z.object({
      type: z.literal('server_tool_use'),
      id: z.string(),
      name: z.string(),
      input: input().nullish(),
      caller: caller(),
    }),
    z.object({
      type: z.literal('mcp_tool_use'),
      id: z.string(),
      name: z.string(),
      input: z.unknown(),
      server_name: z.string(),
    }),
    z.object({ type: z.literal('mcp_tool_result'), ...result, is_error: z.boolean(), content: mcpContent() }),
    z.object({ type: z.literal('web_fetch_tool_result'), ...result, caller: caller(), content: fetched() }),
    z.object({ type: z.literal('web_search_tool_result'), ...result, caller: caller(), content: found() }),
    z.object({ type: z.literal('code_execution_tool_result'), ...result, content: executed() }),
    z.object({ type: z.literal('bash_code_execution_tool_result'), ...result, content: executedInBash() }),
    z.object({ type: z.literal('text_editor_code_execution_tool_result'), ...result, content: edited() }),
    z.object({ type: z.literal('tool_search_tool_result'), ...result, content: toolsFound() }),
    z.object({ type: z.literal('advisor_tool_result'), ...result, content: advised() }),
    z.object({ type: z.literal('fallback'), from: model(), to: model() }),
  ])
}

export type ContentBlock = z.infer<ReturnType<typeof contentBlock>>
export type Caller = z.infer<ReturnType<typeof caller>>

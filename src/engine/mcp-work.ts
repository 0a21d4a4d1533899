/** A call of an MCP tool, and how its answers stand in the log. */
import type { ErrorValue } from '../part/error.ts'
import type { McpQuestions } from '../tools/mcp/answer.ts'

export interface McpWork {
  server: string
  tool: string
  /** The arguments, checked. */
  input: unknown
  /** ms until the server must have answered, with a result, a question or a task. Default: the server's. */
  timeout?: number | undefined
  /** A model reads the result. */
  forModel: boolean
  /** Of a model: where what the server says meanwhile belongs. */
  call?: { toolCallId: string; toolName: string }
  /** The step of the call was started before, by another process or before the run waited. */
  resumed: boolean
}

/** An answer as the log has it: the result of a step. What only the server may read is sealed. */
export type Recorded =
  | { state: 'done'; value: unknown }
  | { state: 'failed'; error: ErrorValue }
  | { state: 'input_required' | 'task'; kept: string }

/** What is sealed in an answer. */
export type Kept = { questions: McpQuestions; state?: string } | KeptTask

export interface KeptTask {
  task: string
  pollMs?: number
  server: string
  tool: string
}

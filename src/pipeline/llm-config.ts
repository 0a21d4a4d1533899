import type { Message, ToolSpec } from '../part/message.ts'
import type { ValueSchema } from './value-schema.ts'

/** `config` of an `llm` step, typed. `messages` may still be a reference (`$input.messages`). Milliseconds everywhere. */
export interface LlmConfig {
  model?: string
  /** Models to try in turn when the one before refuses: the rest of `model: [a, b, c]`. */
  fallbacks?: string[]
  system?: string
  messages: string | Message[]
  stream: boolean
  stage?: string
  tools: ToolUse[]
  /** MCP servers all of whose tools are offered, as `server_tool`: the items `{mcp: server}` of `tools`. */
  toolSources?: McpToolUse[]
  /** Tools that run in the client: the items with `client: true` of `tools`. */
  clientTools?: ToolSpec[]
  toolChoice?: 'auto' | 'none' | 'required' | { tool: string }
  maxSteps: number
  /** The answer must be JSON that fits. */
  output?: { schema: ValueSchema }
  temperature?: number
  maxOutputTokens?: number
  topP?: number
  stopSequences?: string[]
  seed?: number
  reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
  providerOptions?: Record<string, Record<string, unknown>>
  headers?: Record<string, string>
  retries: number
  onChunk?: string
  onStepFinish?: string
  onFinish?: string
  onError?: string
  onAbort?: string
}

/** A tool as a step uses it: a registered name or an MCP tool's `server_tool`, with what the file overrides. */
export interface ToolUse {
  name: string
  description?: string
  approval?: boolean
  timeout?: number
}

/** All tools of an MCP server, or those named in `tools` (by the server's own names, without its prefix). */
export interface McpToolUse {
  mcp: string
  tools?: string[]
  approval?: boolean
  timeout?: number
}

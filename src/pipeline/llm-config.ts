import type { Message, ToolSpec } from '../part/message.ts'
import type { ValueSchema } from './value-schema.ts'

/**
 * The typed config that `llm` and `router` share. `messages` may still be a reference (`$input.messages`).
 * All durations are in milliseconds.
 */
export interface ToolLoopConfig {
  model?: string
  /** Models to try in order when the previous one refuses: the rest of `model: [a, b, c]`. */
  fallbacks?: string[]
  system?: string
  messages: string | Message[]
  stage?: string
  tools: ToolUse[]
  /** MCP servers whose tools are offered as `server_tool`: the items `{mcp: server}` of `tools`. */
  toolSources?: McpToolUse[]
  /** Tools that run in the client: the items with `client: true` of `tools`. */
  clientTools?: ToolSpec[]
  toolChoice?: 'auto' | 'none' | 'required' | { tool: string }
  maxSteps: number
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

export interface LlmConfig extends ToolLoopConfig {
  stream: boolean
  /** The answer must be JSON that matches `schema`. */
  output?: {
    schema: ValueSchema
    /** How many times invalid JSON is returned to the model with its errors before the step fails. */
    retries?: number
  }
}

export interface RouterConfig extends ToolLoopConfig {
  /** Whether the router may also call the tools that a client sends with its request. */
  requestTools: boolean
}

/** A tool of a step: a registered name or an MCP tool's `server_tool`, with the settings that the file overrides. */
export interface ToolUse {
  name: string
  description?: string
  approval?: boolean
  timeout?: number
}

/** All tools of an MCP server, or only `tools` (by their names on the server, without the prefix). */
export interface McpToolUse {
  mcp: string
  tools?: string[]
  approval?: boolean
  timeout?: number
}

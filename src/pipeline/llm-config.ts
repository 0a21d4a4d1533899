import type { Message, ToolSpec } from '../part/message.ts'
import type { ValueSchema } from './value-schema.ts'

/**
 * What the configs of `llm` and `router` have in common, typed. `messages` may still be a reference (`$input.messages`).
 * Milliseconds everywhere.
 */
export interface ToolLoopConfig {
  model?: string
  /** Models to try in turn when the one before refuses: the rest of `model: [a, b, c]`. */
  fallbacks?: string[]
  system?: string
  messages: string | Message[]
  stage?: string
  tools: ToolUse[]
  /** MCP servers all of whose tools are offered, as `server_tool`: the items `{mcp: server}` of `tools`. */
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
  /** The answer must be JSON that fits. */
  output?: {
    schema: ValueSchema
    /** How often the model is told what is wrong with its JSON before the step fails. */
    retries?: number
  }
}

export interface RouterConfig extends ToolLoopConfig {
  /** Whether the tools that a client offers with its request are the router's to call, too. */
  requestTools: boolean
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

import type { Message } from '../part/message.ts'

/** `config` of an `llm` step, typed. `messages` may still be a reference (`$input.messages`). Milliseconds everywhere. */
export interface LlmConfig {
  model?: string
  system?: string
  messages: string | Message[]
  stream: boolean
  stage?: string
  tools: ToolUse[]
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

/** A tool as a step uses it: a registered name, with what the file overrides. */
export interface ToolUse {
  name: string
  description?: string
  approval?: boolean
  timeout?: number
}

/** Model settings of a request. Settings in the agent's file override them. */
export interface CallSettings {
  temperature?: number
  topP?: number
  maxOutputTokens?: number
  stopSequences?: string[]
  seed?: number
  presencePenalty?: number
  frequencyPenalty?: number
  reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
  /** Applies to the client's tools and to those of the file. */
  toolChoice?: 'auto' | 'none' | 'required' | { tool: string }
  /** The answer must be JSON, matching the schema if there is one. */
  responseFormat?: { type: 'json'; schema?: Record<string, unknown>; name?: string; description?: string }
  /** Provider-specific settings, by provider name. */
  providerOptions?: Record<string, Record<string, unknown>>
}

/** What a request asks of the model that answers it; what the agent's file says itself stands. */
export interface CallSettings {
  temperature?: number
  topP?: number
  maxOutputTokens?: number
  stopSequences?: string[]
  seed?: number
  presencePenalty?: number
  frequencyPenalty?: number
  reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
  /** Of the tools that the client offers and those of the file. */
  toolChoice?: 'auto' | 'none' | 'required' | { tool: string }
  /** The answer must be JSON, of this schema where one is given. */
  responseFormat?: { type: 'json'; schema?: Record<string, unknown>; name?: string; description?: string }
  /** What only one provider has a name for. */
  providerOptions?: Record<string, Record<string, unknown>>
}

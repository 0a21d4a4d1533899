import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'

/**
 * Anthropic rejects a conversation with tool calls if the request declares no tools, as in a step that answers after a
 * router. This wrapper declares the tools that were called, with `toolChoice: none`.
 */
export function withCalledTools(model: LanguageModelV4): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (options) => model.doGenerate(declareCalled(options)),
    doStream: (options) => model.doStream(declareCalled(options)),
  }
}

function declareCalled(options: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
  if ((options.tools ?? []).length > 0) return options
  const parts = options.prompt.flatMap(({ role, content }) => (role === 'assistant' ? content : []))
  const names = new Set(parts.flatMap((part) => (part.type === 'tool-call' ? [part.toolName] : [])))
  if (names.size === 0) return options
  const tools = [...names].map((name) => ({
    type: 'function' as const,
    name,
    inputSchema: { type: 'object' as const },
  }))
  return { ...options, tools, toolChoice: { type: 'none' } }
}

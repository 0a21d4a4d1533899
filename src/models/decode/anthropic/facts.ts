/** What the decoder of Anthropic's messages must know of the request, and which requests it leaves to the package. */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'

export interface CitedDocument {
  title: string
  filename?: string | undefined
  mediaType: string
}

export interface AnthropicFacts {
  /** The answer's schema was sent as a tool named `json`: its arguments are the text. */
  usesJsonTool: boolean
  includePings: boolean
  /** Documents of the prompt that the model may cite, in their order. */
  documents: readonly CitedDocument[]
}

/**
 * `body` is the request's body, as the package built it. Undefined: the package must read the answer itself, because its names of
 * tools depend on provider tools, which we never send.
 */
export function anthropicFactsOf(
  { tools = [], prompt, responseFormat, providerOptions }: LanguageModelV4CallOptions,
  body: { output_config?: { format?: unknown }; output_format?: unknown },
): AnthropicFacts | undefined {
  const hasProviderTools = tools.some(({ type }) => type !== 'function')
  // Tools that a system message adds later.
  const hasInlineTools = prompt.some(
    ({ role, providerOptions: own }) => role === 'system' && own?.['anthropic']?.['toolChanges'] !== undefined,
  )
  if (hasProviderTools || hasInlineTools) return undefined
  const wantsSchema = responseFormat?.type === 'json' && responseFormat.schema !== undefined
  const hasFormat = body.output_config?.format !== undefined || body.output_format !== undefined
  return {
    usesJsonTool: wantsSchema && !hasFormat,
    includePings: providerOptions?.['anthropic']?.['includePings'] === true,
    documents: documentsOf(prompt),
  }
}

function documentsOf(prompt: LanguageModelV4CallOptions['prompt']): CitedDocument[] {
  const parts = prompt.flatMap((message) => (message.role === 'user' ? message.content : []))
  return parts.flatMap((part) => {
    if (part.type !== 'file' || !citable.has(part.mediaType)) return []
    const citations = part.providerOptions?.['anthropic']?.['citations'] as { enabled?: boolean } | undefined
    if (!citations?.enabled) return []
    const { filename, mediaType } = part
    return [{ title: filename ?? 'Untitled Document', filename, mediaType }]
  })
}

const citable = new Set(['application/pdf', 'text/plain'])

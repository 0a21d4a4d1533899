import type { LanguageModelV4Content, LanguageModelV4GenerateResult, LanguageModelV4StreamPart } from '@ai-sdk/provider'

/** Collects a whole stream into one result, for `doGenerate` of streaming models. Undefined without a `finish` part. */
export function toGenerated(parts: readonly LanguageModelV4StreamPart[]): LanguageModelV4GenerateResult | undefined {
  const content: LanguageModelV4Content[] = []
  for (const part of parts) {
    if (part.type === 'text-start') content.push({ type: 'text', text: '' })
    else if (part.type === 'reasoning-start') content.push({ type: 'reasoning', text: '' })
    else if (part.type === 'tool-call') content.push(part)
    else if (part.type === 'text-delta' || part.type === 'reasoning-delta') {
      const block = content.at(-1)
      if (block?.type === 'text' || block?.type === 'reasoning') block.text += part.delta
    } else if (part.type === 'reasoning-end') {
      const block = content.at(-1)
      if (block?.type === 'reasoning' && part.providerMetadata) block.providerMetadata = part.providerMetadata
    }
  }
  const start = parts.find((part) => part.type === 'stream-start')
  const finish = parts.find((part) => part.type === 'finish')
  if (finish === undefined) return undefined
  return { content, finishReason: finish.finishReason, usage: finish.usage, warnings: start?.warnings ?? [] }
}

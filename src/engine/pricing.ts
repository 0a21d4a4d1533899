import type { Usage } from '../part/usage.ts'
import type { Pricing } from '../models/language-model.ts'

/**
 * In USD. Undefined if the price is unknown, except that zero tokens (a recording) cost 0. Cached, cache-write and reasoning tokens
 * have the price of input or output unless they have one of their own. Counts may be negative: a CLI agent corrects its sum.
 */
export function costOf(usage: Usage, pricing: Pricing | undefined): number | undefined {
  if (usage.inputTokens === 0 && usage.outputTokens === 0) return 0
  if (pricing === undefined) return undefined
  const { inputTokens = 0, outputTokens = 0 } = usage
  const { input, output, cachedInput = input, cacheWriteInput = input, reasoning = output } = pricing
  // A provider that counts cached tokens apart from input must not make a call cheaper than free.
  const cached = within(usage.cachedInputTokens, inputTokens)
  const written = within(usage.cacheWriteInputTokens, inputTokens - cached)
  const reasoned = within(usage.reasoningTokens, outputTokens)
  const plain = (inputTokens - cached - written) * input + (outputTokens - reasoned) * output
  return (plain + cached * cachedInput + written * cacheWriteInput + reasoned * reasoning) / 1e6
}

function within(part = 0, whole: number): number {
  return whole < 0 ? Math.max(part, whole) : Math.min(Math.max(part, 0), whole)
}

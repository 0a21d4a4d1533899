import type { Usage } from '../part/usage.ts'
import type { Pricing } from '../models/language-model.ts'

/**
 * In USD. Undefined if the price is unknown, except that zero tokens (a recording) cost 0. Cached input counts as input.
 */
export function costOf(usage: Usage, pricing: Pricing | undefined): number | undefined {
  if (usage.inputTokens === 0 && usage.outputTokens === 0) return 0
  const { inputTokens = 0, outputTokens = 0 } = usage
  return pricing && (inputTokens * pricing.input + outputTokens * pricing.output) / 1e6
}

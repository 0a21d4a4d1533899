import type { Usage } from '../part/usage.ts'
import type { Pricing } from './ports.ts'

/** USD; undefined when no price is known: an unknown price is not 0. Cached input counts as input. */
export function costOf({ inputTokens = 0, outputTokens = 0 }: Usage, pricing: Pricing | undefined): number | undefined {
  return pricing && (inputTokens * pricing.input + outputTokens * pricing.output) / 1e6
}

/** An answer that takes several requests: the token for the next one, and what each of them was grounded in. */
import type { Candidate, Grounding } from './chunk-schema.ts'

export function createContinuation() {
  const earlier: (Grounding | null)[] = []
  let grounding: Grounding | null = null
  let token: string | undefined

  return {
    note(candidate: Candidate | undefined): void {
      grounding = candidate?.groundingMetadata ?? grounding
      if (candidate?.finishReason === 'CONTINUATION') token = candidate.continuationToken ?? token
    },
    token: () => token,
    next(): void {
      token = undefined
      earlier.push(grounding)
      grounding = null
    },
    drop(): void {
      token = undefined
    },
    groundings: () => (earlier.length > 0 ? { groundingMetadataPerRequest: [...earlier, grounding] } : undefined),
  }
}

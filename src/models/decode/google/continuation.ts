/** An answer that takes several requests: the token for the next one, and what each of them was grounded in. */
import type { Candidate, Grounding } from './chunk-schema.ts'

export interface Continuation {
  note(candidate: Candidate | undefined): void
  token(): string | undefined
  next(): void
  drop(): void
  groundings(): { groundingMetadataPerRequest: (Grounding | null)[] } | undefined
}

export function createContinuation(): Continuation {
  return new RequestSeries()
}

/** A class, because its functions would cost each open answer more than what it knows. */
class RequestSeries implements Continuation {
  readonly #earlier: (Grounding | null)[] = []
  #grounding: Grounding | null = null
  #token: string | undefined = undefined

  note(candidate: Candidate | undefined): void {
    this.#grounding = candidate?.groundingMetadata ?? this.#grounding
    if (candidate?.finishReason === 'CONTINUATION') this.#token = candidate.continuationToken ?? this.#token
  }

  token(): string | undefined {
    return this.#token
  }

  next(): void {
    this.#token = undefined
    this.#earlier.push(this.#grounding)
    this.#grounding = null
  }

  drop(): void {
    this.#token = undefined
  }

  groundings(): { groundingMetadataPerRequest: (Grounding | null)[] } | undefined {
    return this.#earlier.length > 0 ? { groundingMetadataPerRequest: [...this.#earlier, this.#grounding] } : undefined
  }
}

/** Parts that wait until the package would have resolved `doStream`: an error before that refuses the request. */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'

export type Emit = (part: LanguageModelV4StreamPart) => void

export interface Gate {
  emit(part: LanguageModelV4StreamPart): void
  /** Emits what has waited, and everything from now on at once. */
  open(): void
  isOpen(): boolean
}

export function createGate(emit: Emit): Gate {
  return new WaitingGate(emit)
}

/** A class, because its functions would cost each open answer more than what it knows. */
class WaitingGate implements Gate {
  readonly #emit: Emit
  #waiting: LanguageModelV4StreamPart[] | undefined = []

  constructor(emit: Emit) {
    this.#emit = emit
  }

  emit(part: LanguageModelV4StreamPart): void {
    if (this.#waiting === undefined) this.#emit(part)
    else this.#waiting.push(part)
  }

  open(): void {
    const parts = this.#waiting ?? []
    this.#waiting = undefined
    for (const part of parts) this.#emit(part)
  }

  isOpen(): boolean {
    return this.#waiting === undefined
  }
}

/** Parts that wait until the package would have resolved `doStream`: an error before that refuses the request. */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'

export type Emit = (part: LanguageModelV4StreamPart) => void

export interface Gate {
  emit: Emit
  /** Emits what has waited, and everything from now on at once. */
  open(): void
  isOpen(): boolean
}

export function createGate(emit: Emit): Gate {
  let waiting: LanguageModelV4StreamPart[] | undefined = []
  return {
    emit(part) {
      if (waiting === undefined) emit(part)
      else waiting.push(part)
    },
    open() {
      const parts = waiting ?? []
      waiting = undefined
      for (const part of parts) emit(part)
    },
    isOpen: () => waiting === undefined,
  }
}

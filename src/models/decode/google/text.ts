/** Texts and thoughts of Google's models: blocks follow from what comes one after the other. */
import type { Part } from './chunk-schema.ts'
import { endReasoning, endText, signatureOf, type State } from './state.ts'

export type TextPart = Extract<Part, { text?: unknown }>

export function readText(state: State, part: TextPart, text: string): void {
  const providerMetadata = signatureOf(state, part.thoughtSignature)
  if (text.length === 0) {
    if (providerMetadata !== undefined) readBareSignature(state, part, providerMetadata)
  } else if (part.thought === true) {
    endText(state)
    if (state.reasoningId === null) {
      state.reasoningId = String(state.blocks++)
      state.emit({ type: 'reasoning-start', id: state.reasoningId, providerMetadata })
    }
    state.emit({ type: 'reasoning-delta', id: state.reasoningId, delta: text, providerMetadata })
  } else {
    endReasoning(state)
    if (state.textId === null) {
      state.textId = String(state.blocks++)
      state.emit({ type: 'text-start', id: state.textId, providerMetadata })
    }
    state.emit({ type: 'text-delta', id: state.textId, delta: text, providerMetadata })
  }
}

/** It must come back in the same place, so it makes a block of its own unless a text is open. */
function readBareSignature(
  state: State,
  part: TextPart,
  providerMetadata: NonNullable<ReturnType<typeof signatureOf>>,
): void {
  const { emit, textId } = state
  if (textId !== null) return emit({ type: 'text-delta', id: textId, delta: '', providerMetadata })
  endReasoning(state)
  const id = String(state.blocks++)
  const type = part.thought === true ? 'reasoning' : 'text'
  emit({ type: `${type}-start`, id, providerMetadata })
  emit({ type: `${type}-delta`, id, delta: '', providerMetadata })
  emit({ type: `${type}-end`, id })
}

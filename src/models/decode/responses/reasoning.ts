/** Summaries of OpenAI's reasoning: one item, several parts. */
import type { AddedItem, DoneItem } from './item-schema.ts'
import type { ChunkOf } from './chunk-schema.ts'
import { itemIdOf, type State } from './state.ts'

type Item<T extends { type: string }> = Extract<T, { type: 'reasoning' }>

export function startReasoning(state: State, index: number, item: Item<AddedItem>): void {
  const { id, encrypted_content: encryptedContent } = item
  state.itemIds[index] = id
  state.reasoning[id] = { encryptedContent, summaries: { 0: 'active' } }
  emitStart(state, id, 0, encryptedContent)
}

export function endReasoning(state: State, index: number, item: Item<DoneItem>): void {
  const itemId = itemIdOf(state, { item_id: item.id, output_index: index })
  const open = state.reasoning[itemId]
  // Not `undefined` alone: an id such as `constructor` finds something here, in the package too.
  if (open !== undefined) {
    const unfinished = Object.entries(open.summaries).filter(
      ([, status]) => status === 'active' || status === 'can-conclude',
    )
    for (const [summary] of unfinished) {
      state.emit({
        type: 'reasoning-end',
        id: `${itemId}:${summary}`,
        providerMetadata: {
          [state.metadataKey]: { itemId, reasoningEncryptedContent: item.encrypted_content ?? null },
        },
      })
    }
    delete state.reasoning[itemId]
  }
  state.itemIds[index] = undefined
}

export function startSummary(state: State, chunk: ChunkOf<'response.reasoning_summary_part.added'>): void {
  const itemId = itemIdOf(state, chunk)
  // The first starts with its item.
  if (!(chunk.summary_index > 0)) return
  const open = state.reasoning[itemId]
  if (open === undefined) return
  open.summaries[chunk.summary_index] = 'active'
  for (const summary of Object.keys(open.summaries)) {
    if (open.summaries[summary] !== 'can-conclude') continue
    emitEnd(state, itemId, summary)
    open.summaries[summary] = 'concluded'
  }
  emitStart(state, itemId, chunk.summary_index, open.encryptedContent)
}

export function readSummaryDelta(state: State, chunk: ChunkOf<'response.reasoning_summary_text.delta'>): void {
  const itemId = itemIdOf(state, chunk)
  state.emit({
    type: 'reasoning-delta',
    id: `${itemId}:${chunk.summary_index}`,
    delta: chunk.delta,
    providerMetadata: { [state.metadataKey]: { itemId } },
  })
}

export function endSummary(state: State, chunk: ChunkOf<'response.reasoning_summary_part.done'>): void {
  const itemId = itemIdOf(state, chunk)
  const open = state.reasoning[itemId]
  if (open === undefined) return
  // A server that keeps nothing sends the encrypted form with the last event of the item.
  if (state.isStored) emitEnd(state, itemId, chunk.summary_index)
  open.summaries[chunk.summary_index] = state.isStored ? 'concluded' : 'can-conclude'
}

function emitStart(state: State, itemId: string, summary: number, encrypted: string | null | undefined): void {
  state.emit({
    type: 'reasoning-start',
    id: `${itemId}:${summary}`,
    providerMetadata: { [state.metadataKey]: { itemId, reasoningEncryptedContent: encrypted ?? null } },
  })
}

function emitEnd(state: State, itemId: string, summary: number | string): void {
  state.emit({
    type: 'reasoning-end',
    id: `${itemId}:${summary}`,
    providerMetadata: { [state.metadataKey]: { itemId } },
  })
}

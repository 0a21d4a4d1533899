/** Patches of files: their input is streamed as the JSON text of the call. */
import type { ChunkOf } from './chunk-schema.ts'
import type { DoneItem } from './item-schema.ts'
import { escapeJson, type OpenCall, type State } from './state.ts'

export function readPatchDelta(state: State, chunk: ChunkOf<'response.apply_patch_call_operation_diff.delta'>): void {
  const open = state.calls[chunk.output_index]
  if (open?.patch === undefined) return
  state.emit({ type: 'tool-input-delta', id: open.toolCallId, delta: escapeJson(chunk.delta) })
  open.patch.hasDiff = true
}

export function readPatchDiff(state: State, chunk: ChunkOf<'response.apply_patch_call_operation_diff.done'>): void {
  const open = state.calls[chunk.output_index]
  if (open !== undefined) endInput(state, open, chunk.diff)
}

export function readDonePatch(
  state: State,
  index: number,
  item: Extract<DoneItem, { type: 'apply_patch_call' }>,
): void {
  const open = state.calls[index]
  state.calls[index] = undefined
  if (open === undefined) return
  const { operation } = item
  if (operation.type !== 'delete_file') endInput(state, open, operation.diff)
  if (item.status !== 'completed') return
  state.hasFunctionCall = true
  state.emit({
    type: 'tool-call',
    toolCallId: open.toolCallId,
    toolName: state.toCustomToolName('apply_patch'),
    input: JSON.stringify({ callId: item.call_id, operation }),
    providerMetadata: { [state.metadataKey]: { itemId: item.id } },
  })
}

function endInput({ emit }: State, { toolCallId: id, patch }: OpenCall, diff: string): void {
  if (patch === undefined || patch.isEnded) return
  if (!patch.hasDiff) emit({ type: 'tool-input-delta', id, delta: escapeJson(diff) })
  emit({ type: 'tool-input-delta', id, delta: '"}}' })
  emit({ type: 'tool-input-end', id })
  patch.isEnded = true
}

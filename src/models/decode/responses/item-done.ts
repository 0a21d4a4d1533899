/** `response.output_item.done`: a text, a thought or a call of one of the user's tools is complete. */
import { readHostedItem } from './hosted-item.ts'
import type { DoneItem } from './item-schema.ts'
import { isUndeclaredParallel } from './item-added.ts'
import { expandParallelCall } from './parallel-call.ts'
import { endReasoning } from './reasoning.ts'
import { citationsOf } from './sources.ts'
import { itemIdOf, type OpenCall, type State } from './state.ts'

type Item<T extends DoneItem['type']> = Extract<DoneItem, { type: T }>

export function readDoneItem(state: State, index: number, item: DoneItem): void {
  switch (item.type) {
    case 'message':
      return endText(state, index, item)
    case 'reasoning':
      return endReasoning(state, index, item)
    case 'function_call':
      return endFunctionCall(state, index, item)
    case 'custom_tool_call':
      return endCustomCall(state, index, item)
    default:
      return readHostedItem(state, index, item)
  }
}

function endText(state: State, index: number, item: Item<'message'>): void {
  const { annotations, metadataKey } = state
  const itemId = itemIdOf(state, { item_id: item.id, output_index: index })
  const phase = item.phase ?? state.phase
  state.phase = undefined
  state.emit({
    type: 'text-end',
    id: itemId,
    ...(annotations.some(({ type }) => type !== 'file_path') && { citations: citationsOf(annotations, metadataKey) }),
    providerMetadata: {
      [metadataKey]: {
        itemId,
        ...(phase !== undefined && { phase }),
        ...(annotations.length > 0 && { annotations }),
      },
    },
  })
  state.itemIds[index] = undefined
}

function endFunctionCall(state: State, index: number, item: Item<'function_call'>): void {
  const open = state.calls[index]
  state.calls[index] = undefined
  state.hasFunctionCall = true
  const isWithheld = open?.withheld === undefined ? isUndeclaredParallel(state, item.name) : open.withheld !== false
  if (!isWithheld) return emitCall(state, item, open)
  const calls = expandParallelCall(state, item)
  if (calls === undefined) {
    emitWithheld(state, item, open)
    return emitCall(state, item, open)
  }
  for (const call of calls) {
    const { toolCallId: id, toolName, input } = call
    state.emit({ type: 'tool-input-start', id, toolName })
    state.emit({ type: 'tool-input-delta', id, delta: input })
    state.emit({ type: 'tool-input-end', id })
    state.emit(call)
  }
}

function emitWithheld({ emit }: State, item: Item<'function_call'>, open: OpenCall | undefined): void {
  const { call_id: id, name: toolName } = item
  const withheld = open?.withheld || []
  emit({ type: 'tool-input-start', id, toolName })
  if (withheld.length > 0) for (const delta of withheld) emit({ type: 'tool-input-delta', id, delta })
  else if (item.arguments.length > 0) emit({ type: 'tool-input-delta', id, delta: item.arguments })
}

function emitCall(state: State, item: Item<'function_call'>, open: OpenCall | undefined): void {
  const { call_id: id, namespace, caller } = item
  const isAsync = item.async ?? open?.isAsync ?? undefined
  const named = namespace !== null && namespace !== undefined ? { namespace } : undefined
  state.emit({
    type: 'tool-input-end',
    id,
    ...(named && { providerMetadata: { [state.metadataKey]: named } }),
  })
  state.emit({
    type: 'tool-call',
    toolCallId: id,
    toolName: item.name,
    input: item.arguments,
    providerMetadata: {
      [state.metadataKey]: {
        itemId: item.id,
        ...(isAsync !== undefined && { async: isAsync }),
        ...named,
        ...(caller && {
          caller: caller.type === 'program' ? { type: 'program', callerId: caller.caller_id } : caller,
        }),
      },
    },
  })
}

function endCustomCall(state: State, index: number, item: Item<'custom_tool_call'>): void {
  const isAsync = item.async ?? state.calls[index]?.isAsync ?? undefined
  state.calls[index] = undefined
  state.hasFunctionCall = true
  state.emit({ type: 'tool-input-end', id: item.call_id })
  state.emit({
    type: 'tool-call',
    toolCallId: item.call_id,
    toolName: state.toCustomToolName(item.name),
    input: JSON.stringify(item.input),
    providerMetadata: {
      [state.metadataKey]: { itemId: item.id, ...(isAsync !== undefined && { async: isAsync }) },
    },
  })
}

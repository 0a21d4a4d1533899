/** One event of OpenAI's responses stream → parts. The order of the cases is that of their frequency. */
import { readPatchDelta, readPatchDiff } from './apply-patch.ts'
import type { Chunk, ChunkOf } from './chunk-schema.ts'
import { readError, readFailed, readFinished } from './ending.ts'
import { readAddedItem } from './item-added.ts'
import { readDoneItem } from './item-done.ts'
import { endSummary, readSummaryDelta, startSummary } from './reasoning.ts'
import { readAnnotation } from './sources.ts'
import { escapeJson, itemIdOf, type State } from './state.ts'

export function readChunk(state: State, chunk: Chunk): void {
  switch (chunk.type) {
    case 'response.output_text.delta':
      state.emit({ type: 'text-delta', id: itemIdOf(state, chunk), delta: chunk.delta })
      if (state.wantsLogprobs && chunk.logprobs) state.logprobs.push(chunk.logprobs)
      return
    case 'response.function_call_arguments.delta': {
      const open = state.calls[chunk.output_index]
      if (open === undefined) return
      if (open.withheld) open.withheld.push(chunk.delta)
      else state.emit({ type: 'tool-input-delta', id: open.toolCallId, delta: chunk.delta })
      return
    }
    case 'response.reasoning_summary_text.delta':
      return readSummaryDelta(state, chunk)
    case 'response.custom_tool_call_input.delta': {
      const open = state.calls[chunk.output_index]
      if (open) state.emit({ type: 'tool-input-delta', id: open.toolCallId, delta: chunk.delta })
      return
    }
    case 'response.code_interpreter_call_code.delta': {
      const open = state.calls[chunk.output_index]
      if (open) state.emit({ type: 'tool-input-delta', id: open.toolCallId, delta: escapeJson(chunk.delta) })
      return
    }
    case 'response.code_interpreter_call_code.done':
      return readCode(state, chunk)
    case 'response.apply_patch_call_operation_diff.delta':
      return readPatchDelta(state, chunk)
    case 'response.apply_patch_call_operation_diff.done':
      return readPatchDiff(state, chunk)
    case 'response.output_item.added':
      return readAddedItem(state, chunk.output_index, chunk.item)
    case 'response.output_item.done':
      return readDoneItem(state, chunk.output_index, chunk.item)
    case 'response.reasoning_summary_part.added':
      return startSummary(state, chunk)
    case 'response.reasoning_summary_part.done':
      return endSummary(state, chunk)
    case 'response.output_text.annotation.added':
      return readAnnotation(state, chunk.annotation)
    case 'response.refusal.delta':
      state.hasRefusal = true
      return state.emit({ type: 'text-delta', id: itemIdOf(state, chunk), delta: chunk.delta })
    case 'response.refusal.done':
      state.hasRefusal = true
      return
    case 'response.image_generation_call.partial_image':
      return state.emit({
        type: 'tool-result',
        toolCallId: chunk.item_id,
        toolName: state.toCustomToolName('image_generation'),
        result: { result: chunk.partial_image_b64 },
        preliminary: true,
      })
    case 'response.created': {
      const { id, created_at: seconds, model } = chunk.response
      state.responseId = id
      return state.emit({ type: 'response-metadata', id, timestamp: new Date(seconds * 1000), modelId: model })
    }
    case 'response.completed':
    case 'response.incomplete':
      return readFinished(state, chunk)
    case 'response.failed':
      return readFailed(state, chunk)
    case 'error':
      return readError(state, chunk)
    default:
    // `response.in_progress`, `response.function_call_arguments.done` and events that nobody knows.
  }
}

function readCode(state: State, chunk: ChunkOf<'response.code_interpreter_call_code.done'>): void {
  const open = state.calls[chunk.output_index]
  if (open === undefined) return
  const { toolCallId: id } = open
  state.emit({ type: 'tool-input-delta', id, delta: '"}' })
  state.emit({ type: 'tool-input-end', id })
  state.emit({
    type: 'tool-call',
    toolCallId: id,
    toolName: state.toCustomToolName('code_interpreter'),
    // Throws for another tool's call, as the package does.
    input: JSON.stringify({ code: chunk.code, containerId: open.codeInterpreter!.containerId }),
    providerExecuted: true,
  })
}

/** Calls of the user's tools. Most come whole; Vertex can send their arguments piece by piece. */
import type { SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { FunctionCall, PartialArg } from './chunk-schema.ts'
import { createJsonBuilder } from './json-builder.ts'
import { endBlocks, type OpenCall, type State } from './state.ts'

type Metadata = SharedV4ProviderMetadata | undefined

export function readFunctionCall(state: State, call: FunctionCall, metadata: Metadata): void {
  const name = call.name ?? undefined
  const args = call.args ?? undefined
  const pieces = call.partialArgs ?? undefined
  const goesOn = call.willContinue ?? undefined
  if (pieces !== undefined || (name !== undefined && goesOn === true)) {
    if (name !== undefined) startCall(state, name, call, metadata)
    const open = state.openCalls.at(-1)
    if (pieces !== undefined && open !== undefined) readPieces(state, open, pieces, goesOn, metadata)
    return
  }
  if (name === undefined) {
    const isEnd = args === undefined && goesOn === undefined
    if (isEnd && state.openCalls.length > 0) endCall(state)
    return
  }
  endBlocks(state)
  const toolCallId = call.id || state.generateId()
  const input = args === undefined ? '{}' : typeof args === 'string' ? args : JSON.stringify(args)
  state.emit({ type: 'tool-input-start', id: toolCallId, toolName: name, providerMetadata: metadata })
  if (args !== undefined) {
    state.emit({ type: 'tool-input-delta', id: toolCallId, delta: input, providerMetadata: metadata })
  }
  state.emit({ type: 'tool-input-end', id: toolCallId, providerMetadata: metadata })
  state.emit({ type: 'tool-call', toolCallId, toolName: name, input, providerMetadata: metadata })
  state.hasToolCalls = true
}

function startCall(state: State, toolName: string, call: FunctionCall, providerMetadata: Metadata): void {
  const toolCallId = call.id || state.generateId()
  state.openCalls.push({ toolCallId, toolName, input: createJsonBuilder(), providerMetadata })
  state.emit({ type: 'tool-input-start', id: toolCallId, toolName, providerMetadata })
}

function readPieces(
  state: State,
  open: OpenCall,
  pieces: PartialArg[],
  goesOn: boolean | undefined,
  providerMetadata: Metadata,
): void {
  const delta = open.input.add(pieces)
  if (delta.length > 0) state.emit({ type: 'tool-input-delta', id: open.toolCallId, delta, providerMetadata })
  if (goesOn !== true && pieces.every(({ willContinue }) => willContinue !== true)) endCall(state)
}

function endCall(state: State): void {
  const open = state.openCalls.pop()
  if (open === undefined) return
  endBlocks(state)
  const { toolCallId, toolName, providerMetadata } = open
  const { json, rest } = open.input.end()
  if (rest.length > 0) state.emit({ type: 'tool-input-delta', id: toolCallId, delta: rest, providerMetadata })
  state.emit({ type: 'tool-input-end', id: toolCallId, providerMetadata })
  state.emit({ type: 'tool-call', toolCallId, toolName, input: json, providerMetadata })
  state.hasToolCalls = true
}

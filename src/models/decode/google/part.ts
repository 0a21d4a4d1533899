/** One part of a candidate's content → parts of the AI SDK. */
import type { JSONValue } from '@ai-sdk/provider'
import type { Part } from './chunk-schema.ts'
import { readFunctionCall } from './function-call.ts'
import { endBlocks, signatureOf, type State } from './state.ts'
import { readText } from './text.ts'

export function readPart(state: State, part: Part): void {
  if ('functionCall' in part) {
    return readFunctionCall(state, part.functionCall, signatureOf(state, part.thoughtSignature))
  }
  if ('inlineData' in part) {
    endBlocks(state)
    const { mimeType, data } = part.inlineData
    return state.emit({
      type: part.thought === true ? 'reasoning-file' : 'file',
      mediaType: mimeType,
      data: { type: 'data', data },
      providerMetadata: signatureOf(state, part.thoughtSignature),
    })
  }
  if ('toolCall' in part) return readServerCall(state, part)
  if ('toolResponse' in part) return readServerResult(state, part)

  if (part.executableCode?.code) {
    state.codeCallId = state.generateId()
    return state.emit({
      type: 'tool-call',
      toolCallId: state.codeCallId,
      toolName: state.toCustomToolName('code_execution'),
      input: JSON.stringify(part.executableCode),
      providerExecuted: true,
    })
  }
  if (part.codeExecutionResult) {
    if (!state.codeCallId) return
    const { outcome, output } = part.codeExecutionResult
    return state.emit({
      type: 'tool-result',
      toolCallId: state.codeCallId,
      toolName: state.toCustomToolName('code_execution'),
      result: { outcome, output: output ?? '' },
    })
  }
  if (part.text !== null && part.text !== undefined) readText(state, part, part.text)
}

function readServerCall(state: State, { toolCall, thoughtSignature }: Extract<Part, { toolCall: unknown }>): void {
  const toolCallId = toolCall.id || state.generateId()
  state.serverCallId = toolCallId
  state.emit({
    type: 'tool-call',
    toolCallId,
    toolName: `server:${toolCall.toolType}`,
    input: JSON.stringify(toolCall.args ?? {}),
    providerExecuted: true,
    dynamic: true,
    providerMetadata: serverMetadata(state, toolCallId, toolCall.toolType, thoughtSignature),
  })
}

function readServerResult(
  state: State,
  { toolResponse, thoughtSignature }: Extract<Part, { toolResponse: unknown }>,
): void {
  const toolCallId = state.serverCallId || toolResponse.id || state.generateId()
  state.emit({
    type: 'tool-result',
    toolCallId,
    toolName: `server:${toolResponse.toolType}`,
    result: (toolResponse.response ?? {}) as NonNullable<JSONValue>,
    providerMetadata: serverMetadata(state, toolCallId, toolResponse.toolType, thoughtSignature),
  })
  state.serverCallId = undefined
}

function serverMetadata(state: State, id: string, type: string, signature: string | null | undefined) {
  const signed = signature ? { thoughtSignature: signature } : undefined
  return state.metadata({ ...signed, serverToolCallId: id, serverToolType: type })
}

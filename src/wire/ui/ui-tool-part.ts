/** Reads a tool part of an AI SDK `UIMessage`. The input is untrusted. */
import type { Answer } from '../../part/request-part.ts'
import type { ToolCallContent, ToolOutput, ToolResultContent } from '../../part/message.ts'
import { bad, toFields, toOptions, toString, type Fields } from './ui-parts.ts'

export interface UiToolPart {
  toolCallId: string
  toolName: string
  state: string
  providerExecuted: boolean
  fields: Fields
}

const states: ReadonlySet<unknown> = new Set([
  'input-streaming',
  'input-available',
  'approval-requested',
  'approval-responded',
  'output-available',
  'output-error',
  'output-denied',
])

/** `tool-<name>` or `dynamic-tool`; `undefined` for any other part. */
export function toToolPart(part: Fields, place: string): UiToolPart | undefined {
  const type = String(part['type'])
  if (type === 'tool-invocation' && !('state' in part)) return toOldToolPart(part['toolInvocation'], place)
  const dynamic = type === 'dynamic-tool'
  if (!dynamic && !(type.startsWith('tool-') && 'state' in part)) return undefined
  const { state } = part
  if (!states.has(state)) throw bad(`${place}.state`, `must be one of ${[...states].join(', ')}.`)
  return {
    toolCallId: toString(part['toolCallId'], `${place}.toolCallId`),
    toolName: dynamic ? toString(part['toolName'], `${place}.toolName`) : type.slice('tool-'.length),
    state: state as string,
    providerExecuted: part['providerExecuted'] === true,
    fields: part,
  }
}

/** As version 4 of the AI SDK stored calls. */
function toOldToolPart(value: unknown, place: string): UiToolPart | undefined {
  const at = `${place}.toolInvocation`
  const { toolCallId, toolName, args, state, result } = toFields(value, at)
  return {
    toolCallId: toString(toolCallId, `${at}.toolCallId`),
    toolName: toString(toolName, `${at}.toolName`),
    state: state === 'result' ? 'output-available' : 'input-available',
    providerExecuted: false,
    fields: { input: args ?? {}, output: result },
  }
}

/** The call and its result. Undefined without a result: models refuse requests with unanswered calls. */
export function toCallAndResult(part: UiToolPart): { call: ToolCallContent; result: ToolResultContent } | undefined {
  const output = toOutput(part)
  if (!output) return undefined
  const { toolCallId, toolName, providerExecuted, state, fields } = part
  const { callProviderMetadata, resultProviderMetadata } = fields
  const failed = state === 'output-error'
  const input = failed ? (fields['input'] ?? fields['rawInput']) : fields['input']
  const call: ToolCallContent = { type: 'tool-call', toolCallId, toolName, input }
  if (providerExecuted) call.providerExecuted = true
  Object.assign(call, toOptions(callProviderMetadata ?? (failed ? resultProviderMetadata : undefined)))
  const options = providerExecuted ? (resultProviderMetadata ?? callProviderMetadata) : callProviderMetadata
  return { call, result: { type: 'tool-result', toolCallId, toolName, output, ...toOptions(options) } }
}

function toOutput({ state, providerExecuted, fields }: UiToolPart): ToolOutput | undefined {
  const approval = fields['approval'] as { approved?: unknown; reason?: unknown } | undefined
  const reason = typeof approval?.reason === 'string' ? approval.reason : undefined
  switch (state) {
    case 'output-available': {
      const { output = null, preliminary } = fields
      if (preliminary === true) return undefined
      return typeof output === 'string' ? { type: 'text', value: output } : { type: 'json', value: output }
    }
    case 'output-error':
      return { type: providerExecuted ? 'error-json' : 'error-text', value: errorText(fields) }
    case 'output-denied':
      return { type: 'error-text', value: reason ?? 'Tool call execution denied.' }
    case 'approval-responded':
      if (approval?.approved !== false) return undefined
      return reason === undefined ? { type: 'execution-denied' } : { type: 'execution-denied', reason }
    default:
      return undefined
  }
}

/** The client's answer to the request for this call, if any. */
export function toAnswer({ state, fields, providerExecuted }: UiToolPart): Answer | undefined {
  if (state === 'approval-responded') {
    const { approved, reason } = (fields['approval'] ?? {}) as { approved?: unknown; reason?: unknown }
    const answer: Answer = { kind: 'approval', approved: approved === true }
    if (typeof reason === 'string') answer.reason = reason
    return answer
  }
  if (providerExecuted || fields['preliminary'] === true) return undefined
  if (state === 'output-available') return { kind: 'tool', output: fields['output'] ?? null }
  if (state === 'output-error') return { kind: 'tool', output: errorText(fields), isError: true }
  return undefined
}

function errorText({ errorText }: Fields): string {
  return typeof errorText === 'string' ? errorText : (JSON.stringify(errorText) ?? '')
}

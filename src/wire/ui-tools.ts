/**
 * Tool calls of the answer → chunks.
 *
 * Two traps of the clients: a `tool-input-available` whose `dynamic` differs from its `tool-input-start` makes a second
 * part, so the start's flags are kept; and a server `abort` leaves `useChat` free to send again by itself
 * (`sendAutomaticallyWhen`) once every call of the last step has an outcome, so outcomes of aborted calls wait until the
 * run shows that it goes on.
 */
import type { EntryOf } from '../part/entry.ts'
import { messageOf } from '../part/error.ts'
import { parseJson } from '../part/json.ts'
import { callKey } from '../part/open-items.ts'
import { isUnder } from '../part/path.ts'
import { deltaEnd, deltaStart, type Send, type UiChunk } from './ui-chunk.ts'

export interface UiTools {
  /** Tool inputs that wait for their call. */
  pending(): number
  inputStart(entry: EntryOf<'tool-input-start'>, send: Send): string
  inputDelta(entry: EntryOf<'tool-input-delta'>): string
  call(entry: EntryOf<'tool-call'>, send: Send): string
  result(entry: EntryOf<'tool-result'>, send: Send): string
  /** Whether the client was told of the call. */
  knows(entry: EntryOf<'request'>): boolean
  request(entry: EntryOf<'request'>, send: Send): string
  response(entry: EntryOf<'response'>, send: Send): string
  /** Sends outcomes that were held back: the run goes on. */
  flush(send: Send): string
  /** A client finds open inputs in its current step only: those of the last one cannot be closed any more. */
  newStep(): void
  /** Ends inputs that never became a call, so that they do not look as if they were still coming. */
  closeInputs(send: Send): string
  /** Whether a client's active tool input lies outside this path. */
  pendingOutside(path: string): boolean
  /** No more input comes under this path (its step has finished, or was reset). */
  forgetInputs(path: string): void
  forget(path: string): void
}

interface Input {
  path: string
  start: EntryOf<'tool-input-start'>
  delta: string
}
type Call = Pick<EntryOf<'tool-call'>, 'step' | 'providerExecuted' | 'dynamic'>

export function createUiTools(ui7: boolean): UiTools {
  const inputs = new Map<string, Input>()
  let cutOff: Input[] = []
  const calls = new Map<string, Call>()
  const approvals = new Set<string>()
  let held: { path: string; chunk: UiChunk }[] = []

  function call(entry: EntryOf<'tool-call'>, send: Send): string {
    const { step, toolCallId, toolName, input: text, providerMetadata } = entry
    const key = callKey(step, toolCallId)
    const start = inputs.get(key)?.start
    inputs.delete(key)
    const { providerExecuted, dynamic } = { ...entry, ...(start && { dynamic: start.dynamic }) }
    calls.set(key, { step, providerExecuted, dynamic })
    const input = start?.inputEncoding === 'text' ? { value: text } : parse(text)
    const chunk = { toolCallId, toolName, providerExecuted, dynamic, title: start?.title, providerMetadata }
    if (input) return send({ type: 'tool-input-available', ...chunk, input: input.value })
    const errorText = `The model wrote arguments for ${toolName} that are not valid JSON.`
    return send({ type: 'tool-input-error', ...chunk, input: text, errorText })
  }

  function result(entry: EntryOf<'tool-result'>, send: Send): string {
    const { step, toolCallId, result: output, isError, outcome, providerMetadata } = entry
    const key = callKey(step, toolCallId)
    const known = calls.get(key)
    if (!known) return ''
    const preliminary = entry.preliminary === true ? true : undefined
    if (!preliminary) calls.delete(key)
    if (outcome === 'handed-over') return ''
    if (outcome === 'denied') return send({ type: 'tool-output-denied', toolCallId })
    const { providerExecuted, dynamic } = known
    // The first AI SDK 6 has no metadata here, and its schema is strict.
    const chunk = { toolCallId, providerExecuted, dynamic, ...(ui7 && { providerMetadata }) }
    if (!isError) return send({ type: 'tool-output-available', ...chunk, output, preliminary })
    const failed: UiChunk = { type: 'tool-output-error', ...chunk, errorText: messageOf(output) }
    if (outcome !== 'aborted') return send(failed)
    held.push({ path: known.step, chunk: failed })
    return ''
  }

  function forgetInputs(path: string): void {
    for (const [key, input] of inputs) {
      if (!isUnder(input.path, path)) continue
      inputs.delete(key)
      cutOff.push(input)
    }
  }

  return {
    pending: () => inputs.size,
    inputStart(entry, send) {
      const { step, id, toolName, providerExecuted, dynamic, title, inputEncoding, providerMetadata } = entry
      const delta = deltaStart('tool-input-delta', 'toolCallId', id, 'inputTextDelta')
      inputs.set(callKey(step, id), { path: step, start: entry, delta })
      const chunk = { type: 'tool-input-start', toolCallId: id, toolName, providerExecuted, dynamic, title }
      return send(ui7 ? { ...chunk, inputEncoding, providerMetadata } : chunk)
    },
    inputDelta(entry) {
      const input = inputs.get(callKey(entry.step, entry.id))
      return input === undefined ? '' : input.delta + JSON.stringify(entry.delta) + deltaEnd
    },
    call,
    result,
    knows: ({ step, toolCallId }) => calls.has(callKey(step, toolCallId)),
    request({ kind, step, toolCallId, toolName, requestId, input }, send) {
      const key = callKey(step, toolCallId)
      const frames = calls.has(key) ? '' : send({ type: 'tool-input-available', toolCallId, toolName, input })
      // A step before the answer asks: what a client has not been told of it could not answer.
      if (!calls.has(key)) calls.set(key, { step })
      if (kind !== 'approval') return frames
      approvals.add(requestId)
      return frames + send({ type: 'tool-approval-request', approvalId: requestId, toolCallId })
    },
    response({ requestId, answer }, send) {
      if (!approvals.delete(requestId) || !ui7 || answer?.kind !== 'approval') return ''
      const { approved, reason } = answer
      return send({ type: 'tool-approval-response', approvalId: requestId, approved, reason })
    },
    flush(send) {
      const frames = held.map(({ chunk }) => send(chunk)).join('')
      held = []
      return frames
    },
    newStep() {
      cutOff = []
    },
    closeInputs(send) {
      let frames = ''
      for (const { start } of [...cutOff, ...inputs.values()]) {
        const { id: toolCallId, toolName, dynamic } = start
        const errorText = 'The arguments of this tool call were cut off.'
        frames += send({ type: 'tool-input-error', toolCallId, toolName, dynamic, input: null, errorText })
      }
      return frames
    },
    pendingOutside: (path) => [...inputs.values()].some((input) => !isUnder(input.path, path)),
    forgetInputs,
    forget(path) {
      cutOff = cutOff.filter((input) => !isUnder(input.path, path))
      held = held.filter((outcome) => !isUnder(outcome.path, path))
      for (const [key, input] of inputs) if (isUnder(input.path, path)) inputs.delete(key)
    },
  }
}

function parse(text: string): { value: unknown } | undefined {
  if (text.trim() === '') return { value: {} }
  try {
    return { value: parseJson(text) }
  } catch {
    return undefined
  }
}

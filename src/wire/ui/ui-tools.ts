/**
 * Converts tool calls of the answer to chunks.
 *
 * Two client traps. A `tool-input-available` whose `dynamic` differs from its `tool-input-start` creates a second part, so the
 * flags of the start are kept. After an `abort`, `useChat` may send again by itself (`sendAutomaticallyWhen`) once every
 * call of the last step has an outcome, so outcomes of aborted calls are held until the run continues.
 */
import type { EntryOf } from '../../part/entry.ts'
import { messageOf } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import { callKey } from '../../fold/open-items.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import type { Sink } from '../wire.ts'
import type { UiChunk } from './ui-chunk.ts'
import { LateMap } from '../../fold/late-map.ts'

export interface UiTools {
  /** Number of tool inputs without their call. */
  pending(): number
  prompt(entry: EntryOf<'prompt'>): void
  inputStart(entry: EntryOf<'tool-input-start'>): void
  inputDelta(entry: EntryOf<'tool-input-delta'>): void
  /** Sends what is open again, for a client that joins here: inputs (their calls have them whole), calls, approvals. */
  reopen(): void
  call(entry: EntryOf<'tool-call'>): void
  result(entry: EntryOf<'tool-result'>): void
  /** Whether the call was sent to the client. */
  knows(entry: EntryOf<'request'>): boolean
  request(entry: EntryOf<'request'>): void
  response(entry: EntryOf<'response'>): void
  /** Sends held outcomes. Call it when the run continues. */
  flush(): void
  /** Forgets cut-off inputs of the previous step: clients find open inputs only in the current one. */
  newStep(): void
  /** Ends inputs that never became a call, so that they do not look as if they were still streaming. */
  closeInputs(): void
  /** Whether a tool input outside this path is open. */
  pendingOutside(path: string): boolean
  /** Marks open inputs under this path as cut off: its step has finished. */
  forgetInputs(path: string): void
  forget(path: string): void
}

interface Input {
  path: string
  start: EntryOf<'tool-input-start'>
  sendDelta(text: string): void
}
interface Call extends Pick<EntryOf<'tool-call'>, 'step' | 'providerExecuted' | 'dynamic'> {
  /** What is sent again once the call is approved. */
  chunk?: UiChunk
  /** The client must not run it yet. */
  isGated?: boolean
}

/** Clients run no call that somebody else executes: a gated one is theirs once it is approved. */
const shownAs = ({ chunk, isGated }: Call & { chunk: UiChunk }) =>
  isGated ? { ...chunk, providerExecuted: true } : chunk

export function createUiTools({ send, prepare }: Sink<UiChunk>, ui7: boolean): UiTools {
  const inputs = new LateMap<string, Input>()
  let cutOff: Input[] = []
  const calls = new LateMap<string, Call>()
  const approvals = new LateMap<string, string>()
  /** Client tools that need approval, by tool loop. */
  const gated = new LateMap<string, ReadonlySet<string>>()
  let held: { path: string; chunk: UiChunk }[] = []

  function call(entry: EntryOf<'tool-call'>): void {
    const { step, toolCallId, toolName, input: text, providerMetadata } = entry
    const key = callKey(step, toolCallId)
    const start = inputs.get(key)?.start
    inputs.delete(key)
    const { providerExecuted, dynamic } = { ...entry, ...(start && { dynamic: start.dynamic }) }
    const isGated = gated.get(parentPath(step))?.has(toolName) === true
    const known: Call = { step, providerExecuted, dynamic }
    calls.set(key, known)
    const input = start?.inputEncoding === 'text' ? { value: text } : parse(text)
    const chunk = { toolCallId, toolName, providerExecuted, dynamic, title: start?.title, providerMetadata }
    if (input) {
      const shown: UiChunk = { type: 'tool-input-available', ...chunk, input: input.value }
      return send(shownAs(Object.assign(known, { chunk: shown, isGated })))
    }
    const errorText = `The model wrote arguments for ${toolName} that are not valid JSON.`
    send({ type: 'tool-input-error', ...chunk, input: text, errorText })
  }

  function result(entry: EntryOf<'tool-result'>): void {
    const { step, toolCallId, result: output, isError, outcome, providerMetadata } = entry
    const key = callKey(step, toolCallId)
    const known = calls.get(key)
    if (!known) return
    const preliminary = entry.preliminary === true ? true : undefined
    if (!preliminary) calls.delete(key)
    if (outcome === 'handed-over') return
    if (outcome === 'denied') return send({ type: 'tool-output-denied', toolCallId })
    const { providerExecuted, dynamic } = known
    // AI SDK 6.0 has no metadata here, and its schema is strict.
    const chunk = { toolCallId, providerExecuted, dynamic, ...(ui7 && { providerMetadata }) }
    if (!isError) return send({ type: 'tool-output-available', ...chunk, output, preliminary })
    const failed: UiChunk = { type: 'tool-output-error', ...chunk, errorText: messageOf(output) }
    if (outcome !== 'aborted') return send(failed)
    held.push({ path: known.step, chunk: failed })
  }

  function sendStart(entry: EntryOf<'tool-input-start'>): void {
    const { id: toolCallId, toolName, providerExecuted, dynamic, title, inputEncoding, providerMetadata } = entry
    const chunk = { type: 'tool-input-start', toolCallId, toolName, providerExecuted, dynamic, title }
    send(ui7 ? { ...chunk, inputEncoding, providerMetadata } : chunk)
  }

  return {
    pending: () => inputs.size,
    prompt({ step, tools = [] }) {
      const names = tools.flatMap(({ name, approval }) => (approval ? [name] : []))
      if (names.length > 0) gated.set(parentPath(step), new Set(names))
    },
    inputStart(entry) {
      const { step, id } = entry
      const sendDelta = prepare((text) => ({ type: 'tool-input-delta', toolCallId: id, inputTextDelta: text }))
      inputs.set(callKey(step, id), { path: step, start: entry, sendDelta })
      sendStart(entry)
    },
    inputDelta({ step, id, delta }) {
      inputs.get(callKey(step, id))?.sendDelta(delta)
    },
    reopen() {
      for (const { start } of inputs.values()) sendStart(start)
      for (const { chunk, ...known } of calls.values()) if (chunk !== undefined) send(shownAs({ ...known, chunk }))
      for (const [approvalId, key] of approvals) {
        const toolCallId = calls.get(key)?.chunk?.['toolCallId']
        if (toolCallId !== undefined) send({ type: 'tool-approval-request', approvalId, toolCallId })
      }
    },
    call,
    result,
    knows: ({ step, toolCallId }) => toolCallId !== undefined && calls.has(callKey(step, toolCallId)),
    request({ kind, step, toolCallId, toolName, requestId, input }) {
      // The protocol has no questions without a tool call.
      if (kind === 'input') return
      const key = callKey(step, toolCallId)
      // A step before the answer may ask. Its call was not sent, and the client can only answer a call that it knows.
      if (!calls.has(key)) {
        const chunk = { type: 'tool-input-available', toolCallId, toolName, input }
        const isGated = kind === 'approval' && gated.get(parentPath(step))?.has(toolName) === true
        const asked = { step, chunk, isGated }
        calls.set(key, asked)
        send(shownAs(asked))
      }
      if (kind !== 'approval') return
      approvals.set(requestId, key)
      send({ type: 'tool-approval-request', approvalId: requestId, toolCallId })
    },
    response({ requestId, answer }) {
      const key = approvals.get(requestId)
      if (key === undefined || !approvals.delete(requestId) || answer?.kind !== 'approval') return
      const { approved, reason, input } = answer
      if (ui7) send({ type: 'tool-approval-response', approvalId: requestId, approved, reason })
      const known = calls.get(key)
      if (!approved || known?.chunk === undefined || (known.isGated !== true && input === undefined)) return
      // `false`, because clients keep what an absent value does not change.
      const owner = known.isGated === true ? { providerExecuted: false } : undefined
      send({ ...known.chunk, ...owner, ...(input === undefined ? undefined : { input }) })
      known.isGated = false
    },
    flush() {
      for (const { chunk } of held) send(chunk)
      held = []
    },
    newStep() {
      cutOff = []
    },
    closeInputs() {
      for (const { start } of [...cutOff, ...inputs.values()]) {
        const { id: toolCallId, toolName, dynamic } = start
        const errorText = 'The arguments of this tool call were cut off.'
        send({ type: 'tool-input-error', toolCallId, toolName, dynamic, input: null, errorText })
      }
    },
    pendingOutside: (path) => [...inputs.values()].some((input) => !isUnder(input.path, path)),
    forgetInputs(path) {
      for (const [key, input] of inputs) {
        if (!isUnder(input.path, path)) continue
        inputs.delete(key)
        cutOff.push(input)
      }
    },
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

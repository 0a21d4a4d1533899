/**
 * Converts tool calls of the answer to chunks.
 *
 * Two client traps. A `tool-input-available` whose `dynamic` differs from its `tool-input-start` creates a second part, so the
 * flags of the start are kept. After an `abort`, `useChat` may send again by itself (`sendAutomaticallyWhen`) once every
 * call of the last step has an outcome, so outcomes of aborted calls are held until the run continues.
 */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { EntryOf } from '../../part/entry.ts'
import { messageOf } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import { callKey } from '../../fold/open-items.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import type { Sink } from '../wire.ts'
import type { UiChunk } from './ui-chunk.ts'
import { LazyMap } from '../../fold/lazy-map.ts'

export interface UiTools {
  /** Number of tool inputs without their call. */
  pending(): number
  prompt(entry: EntryOf<'prompt'>): void
  inputStart(entry: EntryOf<'tool-input-start'>): void
  inputDelta(entry: EntryOf<'tool-input-delta'>): void
  /** Sends open items again, for a client that joins here: inputs (their calls have the whole arguments), calls, approvals. */
  reopen(): void
  call(entry: EntryOf<'tool-call'>): void
  result(entry: EntryOf<'tool-result'>): void
  /** Whether the call was sent to the client. */
  knows(entry: EntryOf<'request'>): boolean
  /** `isOffered`: the client may answer. Otherwise it only learns that the run waits. */
  request(entry: EntryOf<'request'>, isOffered: boolean, place?: RequestPlace): void
  response(entry: EntryOf<'response'>): void
  /** Sends held outcomes. Call it when the run continues. */
  flush(): void
  /** Drops cut-off inputs of the previous step: clients find open inputs only in the current one. */
  newStep(): void
  /** Ends inputs that never became a call, so that they do not look as if they were still streaming. */
  closeInputs(): void
  /** Whether a tool input outside this path is open. */
  pendingOutside(path: string): boolean
  /** Marks open inputs under this path as cut off: its step has finished. */
  forgetInputs(path: string): void
  forget(path: string): void
}

/** Who asks, where it is not the run's own agent. */
export interface RequestPlace {
  /** The agents that lead to the request. */
  agents?: string[]
  /** The tool call that has called the agent which asks. */
  parentToolCallId?: string
}

interface UiToolInput {
  path: string
  start: EntryOf<'tool-input-start'>
  sendDelta(text: string): void
}
interface UiCall extends Pick<EntryOf<'tool-call'>, 'step' | 'providerExecuted' | 'dynamic'> {
  /** The chunk to send again once the call is approved. */
  chunk?: UiChunk
  /** The client must not run it yet. */
  isGated?: boolean
}

/** An open approval. */
interface UiApproval {
  /** Of its call. */
  key: string
  /** Set if somebody else must answer: the data about it. */
  waiting?: Record<string, unknown>
}

interface HeldChunk {
  path: string
  chunk: UiChunk
}

/** Clients do not run provider-executed calls: a gated call is marked as one until it is approved. */
const shownAs = ({ chunk, isGated }: UiCall & { chunk: UiChunk }) =>
  isGated ? { ...chunk, providerExecuted: true } : chunk

export function createUiTools(sink: Sink<UiChunk>, ui7: boolean): UiTools {
  return new ToolChunks(sink, ui7)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class ToolChunks implements UiTools {
  readonly #sink: Sink<UiChunk>
  readonly #ui7: boolean
  readonly #inputs = new LazyMap<string, UiToolInput>()
  #cutOff: UiToolInput[] | undefined = undefined
  readonly #calls = new LazyMap<string, UiCall>()
  readonly #approvals = new LazyMap<string, UiApproval>()
  readonly #questions = new LazyMap<string, Record<string, unknown>>()
  /** Client tools that need approval, by tool loop. */
  readonly #gated = new LazyMap<string, ReadonlySet<string>>()
  #held: HeldChunk[] | undefined = undefined

  constructor(sink: Sink<UiChunk>, ui7: boolean) {
    this.#sink = sink
    this.#ui7 = ui7
  }

  pending(): number {
    return this.#inputs.size
  }

  prompt({ step, tools = [] }: EntryOf<'prompt'>): void {
    const names = tools.flatMap(({ name, approval }) => (approval ? [name] : []))
    if (names.length > 0) this.#gated.set(parentPath(step), new Set(names))
  }

  inputStart(entry: EntryOf<'tool-input-start'>): void {
    const { step, id } = entry
    const sendDelta = this.#sink.prepare((text) => ({ type: 'tool-input-delta', toolCallId: id, inputTextDelta: text }))
    this.#inputs.set(callKey(step, id), { path: step, start: entry, sendDelta })
    this.#sendStart(entry)
  }

  #sendStart(entry: EntryOf<'tool-input-start'>): void {
    const { id: toolCallId, toolName, providerExecuted, dynamic, title, inputEncoding, providerMetadata } = entry
    const chunk = { type: 'tool-input-start', toolCallId, toolName, providerExecuted, dynamic, title }
    this.#sink.send(this.#ui7 ? { ...chunk, inputEncoding, providerMetadata } : chunk)
  }

  inputDelta({ step, id, delta }: EntryOf<'tool-input-delta'>): void {
    this.#inputs.get(callKey(step, id))?.sendDelta(delta)
  }

  reopen(): void {
    for (const { start } of this.#inputs.values()) this.#sendStart(start)
    for (const { chunk, ...known } of this.#calls.values()) {
      if (chunk !== undefined) this.#sink.send(shownAs({ ...known, chunk }))
    }
    for (const [approvalId, { key, waiting }] of this.#approvals) {
      if (waiting !== undefined) {
        this.#sendWaiting(approvalId, waiting)
        continue
      }
      const toolCallId = this.#calls.get(key)?.chunk?.['toolCallId']
      if (toolCallId !== undefined) this.#sink.send({ type: 'tool-approval-request', approvalId, toolCallId })
    }
  }

  call(entry: EntryOf<'tool-call'>): void {
    const { step, toolCallId, toolName, input: text, providerMetadata } = entry
    const key = callKey(step, toolCallId)
    const start = this.#inputs.get(key)?.start
    this.#inputs.delete(key)
    const { providerExecuted, dynamic } = { ...entry, ...(start && { dynamic: start.dynamic }) }
    const isGated = this.#isGated(step, toolName)
    const known: UiCall = { step, providerExecuted, dynamic }
    this.#calls.set(key, known)
    const input = start?.inputEncoding === 'text' ? { value: text } : parse(text)
    const chunk = { toolCallId, toolName, providerExecuted, dynamic, title: start?.title, providerMetadata }
    if (input) {
      const shown: UiChunk = { type: 'tool-input-available', ...chunk, input: input.value }
      return this.#sink.send(shownAs(Object.assign(known, { chunk: shown, isGated })))
    }
    const errorText = `The model wrote arguments for ${toolName} that are not valid JSON.`
    this.#sink.send({ type: 'tool-input-error', ...chunk, input: text, errorText })
  }

  #isGated(step: string, toolName: string): boolean {
    return this.#gated.get(parentPath(step))?.has(toolName) === true
  }

  result(entry: EntryOf<'tool-result'>): void {
    const { step, toolCallId, result: output, isError, outcome, providerMetadata } = entry
    const key = callKey(step, toolCallId)
    const known = this.#calls.get(key)
    if (!known) return
    const preliminary = entry.preliminary === true ? true : undefined
    if (!preliminary) this.#calls.delete(key)
    if (outcome === 'handed-over') return
    if (outcome === 'denied') return this.#sink.send({ type: 'tool-output-denied', toolCallId })
    const { providerExecuted, dynamic } = known
    // AI SDK 6.0 has no metadata here, and its schema is strict.
    const chunk = { toolCallId, providerExecuted, dynamic, ...(this.#ui7 && { providerMetadata }) }
    if (!isError) return this.#sink.send({ type: 'tool-output-available', ...chunk, output, preliminary })
    const failed: UiChunk = { type: 'tool-output-error', ...chunk, errorText: messageOf(output) }
    if (outcome !== 'aborted') return this.#sink.send(failed)
    this.#held ??= []
    this.#held.push({ path: known.step, chunk: failed })
  }

  knows({ step, toolCallId }: EntryOf<'request'>): boolean {
    return toolCallId !== undefined && this.#calls.has(callKey(step, toolCallId))
  }

  /** With an id, so that later data about the same request replaces it in the message. */
  #sendWaiting(id: string, data: Record<string, unknown>): void {
    this.#sink.send({ type: 'data-waiting', id, data })
  }

  request(request: EntryOf<'request'>, isOffered: boolean, place: RequestPlace = {}): void {
    const { kind, step, toolCallId, toolName, requestId, input, roles } = request
    if (kind === 'input') {
      // The protocol has no questions without a tool call: the client answers over the API.
      const { reason, message, schema, metadata } = request
      const question = omitUndefined({ reason, message, schema, metadata })
      this.#questions.set(requestId, question)
      this.#sendWaiting(requestId, question)
      return
    }
    const key = callKey(step, toolCallId)
    if (!isOffered) {
      const waiting = { toolCallId, toolName, roles, agents: place.agents }
      this.#approvals.set(requestId, { key, waiting })
      this.#sendWaiting(requestId, waiting)
      return
    }
    // A step before the answer may make a request. Its call was not sent, and the client can only reply to a known call.
    if (!this.#calls.has(key)) {
      // The client sends it back with the call, which is no part of the conversation.
      const providerMetadata = place.parentToolCallId === undefined ? undefined : { millrace: { ...place } }
      const chunk = { type: 'tool-input-available', toolCallId, toolName, input, providerMetadata }
      const isGated = kind === 'approval' && this.#isGated(step, toolName)
      const asked = { step, chunk, isGated }
      this.#calls.set(key, asked)
      this.#sink.send(shownAs(asked))
    }
    if (kind !== 'approval') return
    this.#approvals.set(requestId, { key })
    this.#sink.send({ type: 'tool-approval-request', approvalId: requestId, toolCallId })
  }

  response({ requestId, answer, outcome }: EntryOf<'response'>): void {
    const question = this.#questions.get(requestId)
    if (question !== undefined) {
      this.#questions.delete(requestId)
      this.#sendWaiting(requestId, { ...question, outcome })
      return
    }
    const { key, waiting } = this.#approvals.get(requestId) ?? {}
    if (key === undefined) return
    this.#approvals.delete(requestId)
    if (waiting !== undefined) this.#sendWaiting(requestId, { ...waiting, outcome })
    if (answer?.kind !== 'approval') return
    const { approved, reason, input } = answer
    if (this.#ui7 && waiting === undefined)
      this.#sink.send({ type: 'tool-approval-response', approvalId: requestId, approved, reason })
    const known = this.#calls.get(key)
    if (!approved || known?.chunk === undefined || (known.isGated !== true && input === undefined)) return
    // `false`, because clients keep the old value if it is absent.
    const owner = known.isGated === true ? { providerExecuted: false } : undefined
    this.#sink.send({ ...known.chunk, ...owner, ...(input === undefined ? undefined : { input }) })
    known.isGated = false
  }

  flush(): void {
    for (const { chunk } of this.#held ?? []) this.#sink.send(chunk)
    this.#held = undefined
  }

  newStep(): void {
    this.#cutOff = undefined
  }

  closeInputs(): void {
    for (const { start } of [...(this.#cutOff ?? []), ...this.#inputs.values()]) {
      const { id: toolCallId, toolName, dynamic } = start
      const errorText = 'The arguments of this tool call were cut off.'
      this.#sink.send({ type: 'tool-input-error', toolCallId, toolName, dynamic, input: null, errorText })
    }
  }

  pendingOutside(path: string): boolean {
    return [...this.#inputs.values()].some((input) => !isUnder(input.path, path))
  }

  forgetInputs(path: string): void {
    for (const [key, input] of this.#inputs) {
      if (!isUnder(input.path, path)) continue
      this.#inputs.delete(key)
      this.#cutOff ??= []
      this.#cutOff.push(input)
    }
  }

  forget(path: string): void {
    this.#cutOff = this.#cutOff?.filter((input) => !isUnder(input.path, path))
    this.#held = this.#held?.filter((outcome) => !isUnder(outcome.path, path))
    for (const [key, input] of this.#inputs) if (isUnder(input.path, path)) this.#inputs.delete(key)
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

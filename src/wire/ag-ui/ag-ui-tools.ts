/**
 * Tool calls of the answer: TOOL_CALL_START, ARGS and END, always all three, and TOOL_CALL_RESULT for results that the client does not have. A call
 * ends with its `tool-call` in the log, because an input also ends when it is cut off.
 */
import { LazyMap } from '../../fold/lazy-map.ts'
import { callKey } from '../../fold/open-items.ts'
import type { EntryOf } from '../../part/entry.ts'
import type { ProviderMetadata } from '../../part/model-part.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import type { Sink } from '../wire.ts'
import type { AgUiEvent, AgUiEventOf, AgUiOut } from './ag-ui-event.ts'
import { toEncryptedValue, type AgUiIds } from './ag-ui-ids.ts'
import type { ParentCall } from './ag-ui-subagents.ts'
import { messageOf } from '../../part/error.ts'

type Content = AgUiEventOf<'TOOL_CALL_RESULT'>['content']

export interface AgUiTools {
  prompt(entry: EntryOf<'prompt'>): void
  inputStart(entry: EntryOf<'tool-input-start'>): void
  inputDelta(entry: EntryOf<'tool-input-delta'>): void
  call(entry: EntryOf<'tool-call'>): void
  result(entry: EntryOf<'tool-result'>): void
  /**
   * Sends the call first if the client does not have it, because it can only reply to a known call. Returns the client's id of the call. Not
   * `isOffered`: the client may not reply. Then it gets no call, and the result is undefined if it has none.
   */
  request(entry: OpenRequest, isOffered: boolean): string | undefined
  response(entry: EntryOf<'response'>): void
  /** A call that the client has, as its subagent names it. */
  parentOf(path: string, toolCallId: string): ParentCall
  /** The calls without the client's reply, in order. */
  pending(): string[]
  /** Ends calls at and under this path whose arguments were cut off, because its step has finished. Default: all. */
  close(path?: string): void
  /** Sends results for calls at and under this path that an interrupted subagent has made: it makes others instead. */
  interrupt(path: string): void
  /** Drops the calls of an attempt that a crash superseded. */
  forget(path: string): void
}

type OpenRequest = EntryOf<'request'> & { kind: 'tool' | 'approval' }

interface AgUiToolsOptions {
  subagentAt(path: string): string | undefined
  ids: AgUiIds
  /** The client's id for the next call with this id. */
  name(path: string, toolCallId: string): string
  old: boolean
  showsAnswers: boolean
}

/** The names of a call in events. */
interface Sent {
  path: string
  toolCallId: string
  subagentRunId: string | undefined
}

interface AgUiToolInput {
  path: string
  subagentRunId: string | undefined
  /** The client's id of the call. */
  toolCallId: string
  hasArgs: boolean
  messageId: string
  metadata: ProviderMetadata | undefined
  sendDelta(text: string, timestamp: number): void
}
interface AgUiCall {
  path: string
  /** The id of the subagent that makes the call. */
  subagentRunId: string | undefined
  /** The message that has it, once it was sent. */
  messageId?: string
  toolCallId: string
  /** Its position among all calls. */
  n: number
  /** The open request for its result. */
  asked?: string
  /** A client tool that needs approval: the client gets the call only after approval, because it may run every call that it gets. */
  hidden?: { toolName: string; args: string; metadata: ProviderMetadata | undefined }
  /** The open request for its approval. */
  approval?: string
  /** The client has sent the result itself. */
  isAnswered?: true
}

export function createAgUiTools(sink: Sink<AgUiEvent>, out: AgUiOut, options: AgUiToolsOptions): AgUiTools {
  return new ToolEvents(sink, out, options)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class ToolEvents implements AgUiTools {
  readonly #sink: Sink<AgUiEvent>
  readonly #out: AgUiOut
  readonly #subagentAt: AgUiToolsOptions['subagentAt']
  readonly #ids: AgUiIds
  readonly #name: AgUiToolsOptions['name']
  readonly #old: boolean
  readonly #showsAnswers: boolean
  readonly #inputs = new LazyMap<string, AgUiToolInput>()
  readonly #calls = new LazyMap<string, AgUiCall>()
  #handedOver: AgUiCall[] | undefined = undefined
  /** Client tools that need approval, by tool loop. */
  readonly #gated = new LazyMap<string, ReadonlySet<string>>()
  #count = 0

  constructor(sink: Sink<AgUiEvent>, out: AgUiOut, options: AgUiToolsOptions) {
    const { subagentAt, ids, name, old, showsAnswers } = options
    this.#sink = sink
    this.#out = out
    this.#subagentAt = subagentAt
    this.#ids = ids
    this.#name = name
    this.#old = old
    this.#showsAnswers = showsAnswers
  }

  #isGated(path: string, toolName: string): boolean {
    return this.#gated.get(parentPath(path))?.has(toolName) === true
  }

  #start({ path, toolCallId, subagentRunId }: Sent, toolCallName: string): string {
    const parentMessageId = this.#ids.calls(path)
    this.#out.send({ type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId, subagentRunId })
    return parentMessageId
  }

  #end({ toolCallId, subagentRunId }: Sent, args: string | undefined): void {
    if (args !== undefined) {
      const delta = args.trim() === '' ? '{}' : args
      this.#out.send({ type: 'TOOL_CALL_ARGS', toolCallId, delta, subagentRunId })
    }
    this.#out.send({ type: 'TOOL_CALL_END', toolCallId, subagentRunId })
  }

  #sendResult(
    { toolCallId, subagentRunId }: Sent,
    content: Content,
    metadata: Record<string, unknown> | undefined,
  ): void {
    const messageId = this.#ids.result(toolCallId)
    this.#out.send({ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, role: 'tool', metadata, subagentRunId })
  }

  #keep(key: string, path: string, toolCallId: string): AgUiCall {
    const call: AgUiCall = { path, subagentRunId: this.#subagentAt(path), toolCallId, n: ++this.#count }
    this.#calls.set(key, call)
    return call
  }

  #sign({ toolCallId, subagentRunId }: Sent, metadata: ProviderMetadata | undefined): void {
    if (metadata === undefined) return
    const encryptedValue = toEncryptedValue(metadata)
    const entity = { subtype: 'tool-call' as const, entityId: toolCallId }
    this.#out.send({ type: 'REASONING_ENCRYPTED_VALUE', ...entity, encryptedValue, subagentRunId })
  }

  prompt({ step, tools = [] }: EntryOf<'prompt'>): void {
    const asking = tools.flatMap(({ name, approval }) => (approval ? [name] : []))
    if (asking.length > 0) this.#gated.set(parentPath(step), new Set(asking))
  }

  inputStart({ step: path, id, toolName, providerMetadata: metadata }: EntryOf<'tool-input-start'>): void {
    if (this.#isGated(path, toolName)) return
    const toolCallId = this.#name(path, id)
    const subagentRunId = this.#subagentAt(path)
    const tag = subagentRunId === undefined ? undefined : { subagentRunId }
    const sendDelta = this.#sink.prepare((delta, timestamp) => {
      return { type: 'TOOL_CALL_ARGS', timestamp, toolCallId, delta, ...tag }
    })
    const messageId = this.#start({ path, toolCallId, subagentRunId }, toolName)
    const input = { path, subagentRunId, messageId, toolCallId, hasArgs: false, metadata, sendDelta }
    this.#inputs.set(callKey(path, id), input)
  }

  inputDelta({ step, id, delta }: EntryOf<'tool-input-delta'>): void {
    const input = this.#inputs.get(callKey(step, id))
    if (input === undefined || delta === '') return
    if (!input.hasArgs && /\S/u.test(delta)) input.hasArgs = true
    input.sendDelta(delta, this.#out.timestamp)
  }

  call({ step, toolCallId: id, toolName, input: text, providerMetadata }: EntryOf<'tool-call'>): void {
    const key = callKey(step, id)
    const input = this.#inputs.get(key)
    this.#inputs.delete(key)
    const call = this.#keep(key, step, input?.toolCallId ?? this.#name(step, id))
    if (this.#isGated(step, toolName)) {
      call.hidden = { toolName, args: text, metadata: providerMetadata }
      return
    }
    call.messageId = input?.messageId ?? this.#start(call, toolName)
    this.#end(call, input?.hasArgs === true ? undefined : text)
    this.#sign(call, providerMetadata ?? input?.metadata)
  }

  result({ step, toolCallId, result, isError, outcome, preliminary }: EntryOf<'tool-result'>): void {
    const key = callKey(step, toolCallId)
    const call = this.#calls.get(key)
    if (call === undefined || preliminary === true) return
    this.#calls.delete(key)
    // It was denied or closed: the client never got the call.
    if (call.hidden !== undefined) return
    if (outcome === 'handed-over') return void (this.#handedOver ??= []).push(call)
    if (call.isAnswered === true && !this.#showsAnswers) return
    const metadata = isError === true ? { isError, ...(outcome && { outcome }) } : undefined
    this.#sendResult(call, toResultContent(result, this.#old), metadata)
    if (step === call.path) this.#ids.end(step)
  }

  request(
    { kind, step, requestId, toolCallId: id, toolName, input }: OpenRequest,
    isOffered: boolean,
  ): string | undefined {
    const key = callKey(step, id)
    const known = this.#calls.get(key)
    if (known === undefined && !isOffered && !this.#isGated(step, toolName)) return undefined
    const call = known ?? this.#keep(key, step, this.#name(step, id))
    const args = JSON.stringify(input) ?? ''
    if (known === undefined && kind === 'approval' && this.#isGated(step, toolName)) {
      call.hidden = { toolName, args, metadata: undefined }
    } else if (known === undefined) {
      call.messageId = this.#start(call, toolName)
      this.#end(call, args)
    }
    call[kind === 'tool' ? 'asked' : 'approval'] = requestId
    return call.toolCallId
  }

  response({ requestId, outcome, answer }: EntryOf<'response'>): void {
    for (const call of this.#calls.values()) {
      if (call.approval === requestId && call.hidden !== undefined && answer?.kind === 'approval' && answer.approved) {
        const { hidden } = call
        delete call.hidden
        call.messageId = this.#start(call, hidden.toolName)
        this.#end(call, answer.input === undefined ? hidden.args : JSON.stringify(answer.input))
        this.#sign(call, hidden.metadata)
      }
      if (call.asked !== requestId) continue
      delete call.asked
      if (outcome === 'answered') call.isAnswered = true
    }
  }

  parentOf(path: string, toolCallId: string): ParentCall {
    const call = this.#calls.get(callKey(path, toolCallId))
    if (call?.messageId === undefined) return {}
    return { parentToolCallId: call.toolCallId, parentMessageId: call.messageId }
  }

  pending(): string[] {
    const asked = [...this.#calls.values()].filter((call) => call.asked !== undefined)
    return [...(this.#handedOver ?? []), ...asked].sort((a, b) => a.n - b.n).map(({ toolCallId }) => toolCallId)
  }

  close(root = ''): void {
    for (const [key, input] of this.#inputs) {
      if (!isUnder(input.path, root)) continue
      this.#inputs.delete(key)
      this.#end(input, input.hasArgs ? undefined : '')
      const content = 'The arguments of this tool call were cut off.'
      this.#sendResult(input, content, { isError: true, outcome: 'aborted' })
    }
  }

  interrupt(path: string): void {
    for (const call of this.#calls.values()) {
      if (!isUnder(call.path, path) || call.subagentRunId === undefined || call.messageId === undefined) continue
      this.#sendResult(call, 'The server was interrupted during this call.', { isError: true, outcome: 'aborted' })
    }
  }

  forget(path: string): void {
    for (const map of [this.#inputs, this.#calls])
      for (const [key, each] of map) if (isUnder(each.path, path)) map.delete(key)
  }
}

/** The result of a tool as the content of a message. */
type ContentPart = Exclude<Content, string>[number]

/**
 * A text stays a text; a list of texts, images and sounds, as MCP tools return it, becomes parts, or text for a client older than 1.0; any other
 * value becomes JSON.
 */
function toResultContent(result: unknown, old: boolean): Content {
  if (typeof result === 'string') return result
  const parts = Array.isArray(result) ? result.map(toPart) : []
  const isMedia = parts.some((part) => part !== undefined && part.type !== 'text')
  if (!isMedia || !parts.every((part) => part !== undefined)) return JSON.stringify(result) ?? messageOf(result)
  if (!old) return parts
  return parts.map((part) => (part.type === 'text' ? part.text : `[${mediaTypeOf(part)}]`)).join('\n')
}

/** A content block of MCP. */
function toPart(block: unknown): ContentPart | undefined {
  if (typeof block !== 'object' || block === null) return undefined
  const { type, text, data, mimeType } = block as Record<string, unknown>
  if (type === 'text' && typeof text === 'string') return { type, text }
  if (type !== 'image' && type !== 'audio') return undefined
  if (typeof data !== 'string' || typeof mimeType !== 'string') return undefined
  return { type, source: { type: 'data', value: data, mimeType } }
}

function mediaTypeOf(part: Exclude<ContentPart, { type: 'text' }>): string {
  return part.source.mimeType ?? part.type
}

/**
 * The tool calls of a response.
 *
 * A call of a client's tool is streamed while the model writes it, and done when it is handed over. If it is not, the response fails: a client runs
 * what is done, and asks again and again about a call that it cannot run. One that needs approval is sent whole, once it was approved. A call that
 * the server or the provider runs is an `mcp_call`, which no client tries to run; `server_label` is the agent. The `respond` call of a router is
 * hidden, and so are calls inside of tools.
 */
import { createAgentsAbove } from '../../fold/agents-above.ts'
import { callKey } from '../../fold/open-items.ts'
import { LazyMap, LazySet } from '../../fold/lazy-map.ts'
import type { EntryOf } from '../../part/entry.ts'
import { messageOf, type ErrorValue } from '../../part/error.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import { parseJson } from '../../part/json.ts'
import { respondTool } from '../../part/respond.ts'
import { kindOf } from '../../part/step-kind.ts'
import type { ToolSpec } from '../../part/message.ts'
import type { CallItem, OpenItem, ResponseItems } from './response-items.ts'
import type { McpCallItem } from './response-object.ts'
import { toolNames, type ClientToolName } from './tool-names.ts'
import { toToolOutput } from '../openai/openai-output.ts'

interface ClientCall extends OpenItem<CallItem> {
  /** Arguments so far; undefined once they are complete. */
  input?: string | undefined
  toolName: string
}

export interface ResponseCallsOptions {
  items: ResponseItems
  /** Whether calls that the server runs are items. */
  showsServer: boolean
  /** Maximum length of an output in UTF-16 units. */
  toolOutputMaxChars: number
  /** Whether a path belongs to the answer. */
  isAnswer(step: string): boolean
}

/** A class, not closures: one for each open stream (decisions/0028). */
export class ResponseCalls {
  private readonly items: ResponseItems
  private readonly options: ResponseCallsOptions
  private readonly offered = new LazyMap<string, ReadonlyMap<string, ToolSpec>>()
  /** Calls of the client's tools that wait for approval. */
  private readonly gated = new LazyMap<string, EntryOf<'tool-call'>>()
  private readonly routers = new LazySet<string>()
  /** Steps of running tools. */
  private readonly toolSteps = new LazySet<string>()
  private readonly above = createAgentsAbove()
  private readonly open = new LazyMap<string, ClientCall>()
  private readonly running = new LazyMap<string, OpenItem<McpCallItem>>()
  private readonly usedIds = new LazySet<string>()
  /** JSON text of the arguments with which calls were approved, if they are others. */
  private readonly edits = new LazyMap<string, string>()
  private names: ReadonlyMap<string, ClientToolName> = new Map()
  private isHandingOver = false
  private handedOverAt: string[] = []
  private failure: ErrorValue | undefined = undefined

  constructor(options: ResponseCallsOptions) {
    this.options = options
    this.items = options.items
  }

  /** Why the response fails: a call that was sent was not handed over. */
  fault(): ErrorValue | undefined {
    for (const { toolName } of this.open.values()) this.failure ??= lost(toolName, 'it has no outcome')
    return this.failure
  }

  /** Whether calls at or under a path were handed over. */
  handedOver(root = ''): boolean {
    return this.handedOverAt.some((path) => isUnder(path, root))
  }

  /** The answer begins anew, and calls before it are no part of it. */
  restart(): void {
    this.handedOverAt = []
  }

  runStart(entry: EntryOf<'run-start'>): void {
    const { handOver, input } = entry
    this.above.apply(entry)
    this.isHandingOver = handOver === true
    this.names = toolNames(input['tools'])
  }

  stepStart(entry: EntryOf<'step-start'>): void {
    const { step, toolCallId, handoff } = entry
    this.above.apply(entry)
    // The calls of an agent that takes over are those of the answer.
    if (toolCallId !== undefined && handoff !== true) this.toolSteps.add(step)
    if (kindOf(entry) === 'router') this.routers.add(step)
  }

  stepFinish(entry: EntryOf<'step-finish'>): void {
    const { step: path } = entry
    this.above.apply(entry)
    if (!this.offered.delete(path)) return
    for (const { step, toolName, input } of this.open.values()) {
      if (step === path && input !== undefined) this.failure ??= lost(toolName, 'its arguments were cut off')
    }
  }

  prompt({ step, tools = [] }: EntryOf<'prompt'>): void {
    if (!this.isHandingOver) return
    this.offered.set(step, new Map(tools.flatMap((tool) => (tool.client ? [[tool.name, tool] as const] : []))))
  }

  private isClients(call: Pick<EntryOf<'tool-call'>, 'step' | 'toolName' | 'providerExecuted'>): boolean {
    if (call.providerExecuted === true || this.offered.get(call.step)?.has(call.toolName) !== true) return false
    // A called agent cannot hand its calls over: the client would answer in a conversation that does not have them.
    return !this.insideTool(call.step)
  }

  private insideTool(step: string): boolean {
    if (this.toolSteps.size === 0) return false
    for (let path = step; path !== ''; path = parentPath(path)) if (this.toolSteps.has(path)) return true
    return false
  }

  private isGated({ step, toolName }: { step: string; toolName: string }): boolean {
    return this.offered.get(step)?.get(toolName)?.approval === true
  }

  private begin(step: string, toolName: string, toolCallId: string): ClientCall {
    const { name, namespace, isText } = this.names.get(toolName) ?? { name: toolName, isText: false }
    const named = { call_id: this.uniqueId(toolCallId), name, ...(namespace !== undefined && { namespace }) }
    const call: ClientCall = { ...this.items.call(step, named, isText), input: '', toolName }
    this.open.set(callKey(step, toolCallId), call)
    return call
  }

  /** Ids repeat if a provider counts calls from 0 in each message. */
  private uniqueId(toolCallId: string): string {
    let id = toolCallId
    for (let n = 2; this.usedIds.has(id); n++) id = `${toolCallId}-${n}`
    this.usedIds.add(id)
    return id
  }

  private complete(call: ClientCall, json: string): void {
    const sent = call.input ?? ''
    call.input = undefined
    if (call.item.type === 'custom_tool_call') {
      // Its input is JSON for the model and a text for the client, so it is sent when it is complete.
      const text = textInput(json)
      if (text !== '') this.items.callDelta(call, text)
      return this.items.callWritten(call, text)
    }
    // Some providers stream no empty arguments, or only a part of them.
    const rest = json.startsWith(sent) ? json.slice(sent.length) : ''
    if (rest !== '') this.items.callDelta(call, rest)
    this.items.callWritten(call, json)
  }

  inputStart(entry: EntryOf<'tool-input-start'>): void {
    if (this.isClients(entry) && !this.isGated(entry)) this.begin(entry.step, entry.toolName, entry.id)
  }

  inputDelta({ step, id, delta }: EntryOf<'tool-input-delta'>): void {
    const call = this.open.get(callKey(step, id))
    if (call?.input === undefined || delta === '') return
    call.input += delta
    if (call.item.type === 'function_call') this.items.callDelta(call, delta)
  }

  call(entry: EntryOf<'tool-call'>): void {
    const { step, toolCallId, toolName } = entry
    if (toolName === respondTool && this.routers.has(parentPath(step))) return
    const key = callKey(step, toolCallId)
    const json = entry.input.trim() === '' ? '{}' : entry.input
    if (this.isClients(entry)) {
      if (this.isGated(entry)) this.gated.set(key, entry)
      else this.complete(this.open.get(key) ?? this.begin(step, toolName, toolCallId), json)
    } else if (this.options.showsServer && this.options.isAnswer(step)) {
      this.running.set(key, this.items.serverCall(step, this.above.at(step).at(-1)!, toolName, json))
    }
  }

  result(entry: EntryOf<'tool-result'>): void {
    const { step, toolCallId, result, outcome, isError, preliminary } = entry
    if (preliminary === true) return
    const key = callKey(step, toolCallId)
    const waited = this.gated.get(key)
    if (waited !== undefined) {
      this.gated.delete(key)
      // One that was denied is told to the model alone: this client never heard of it.
      if (outcome === 'handed-over') {
        this.complete(
          this.begin(waited.step, waited.toolName, toolCallId),
          this.edits.get(key) ?? (waited.input.trim() || '{}'),
        )
      }
    }
    const call = this.open.get(key)
    if (call !== undefined) {
      this.open.delete(key)
      if (outcome !== 'handed-over') return void (this.failure ??= lost(call.toolName, messageOf(result)))
      this.handedOverAt.push(call.step)
      return this.items.endCall(call)
    }
    const running = this.running.get(key)
    if (running === undefined) return
    this.running.delete(key)
    const text = toToolOutput(result, this.options.toolOutputMaxChars)
    const failed = isError === true || outcome !== undefined
    this.items.endServerCall(running, failed ? { error: text } : { output: text })
  }

  /** The attempt of a step was lost. Returns whether a call for the client was lost with it. */
  reset(entry: EntryOf<'step-reset'>): boolean {
    const { step: path } = entry
    this.above.apply(entry)
    for (const [key, { step }] of this.running) if (isUnder(step, path)) this.running.delete(key)
    return [...this.open.values()].some(({ step }) => isUnder(step, path))
  }

  response(request: EntryOf<'request'>, { answer }: EntryOf<'response'>): void {
    if (answer?.kind !== 'approval' || answer.input === undefined || request.toolCallId === undefined) return
    this.edits.set(callKey(request.step, request.toolCallId), JSON.stringify(answer.input))
  }
}

/** The text of a custom tool's input: `{input}`, or what the model wrote instead. */
function textInput(json: string): string {
  try {
    const value = parseJson(json)
    if (typeof value === 'string') return value
    const { input } = (value ?? {}) as { input?: unknown }
    if (typeof input === 'string') return input
  } catch {
    // It is the text itself.
  }
  return json
}

function lost(toolName: string, why: string): ErrorValue {
  return { code: 'tool-call-lost', message: `The call of ${toolName} must not be run: ${why}.`.replace(/\.+$/u, '.') }
}

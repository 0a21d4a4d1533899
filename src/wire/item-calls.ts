/**
 * The tool calls of an answer, for protocols in which each call is an item (Responses, Messages).
 *
 * A call of a client's tool is streamed while the model writes it, and done when it is handed over. If it is not, the answer fails: a client runs
 * what is done, and asks again and again about a call that it cannot run. One that needs approval is sent whole, once it was approved. A call that
 * the server or the provider runs is an item of its own kind, which no client tries to run. The `respond` call of a router is hidden, and so are
 * calls inside of tools.
 */
import { createAgentsAbove } from '../fold/agents-above.ts'
import { callKey } from '../fold/open-items.ts'
import { LazyMap, LazySet } from '../fold/lazy-map.ts'
import type { EntryOf } from '../part/entry.ts'
import { messageOf, type ErrorValue } from '../part/error.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { respondTool } from '../part/respond.ts'
import { kindOf } from '../part/step-kind.ts'
import type { ToolSpec } from '../part/message.ts'
import { toToolOutput } from './openai/openai-output.ts'

/** Sends calls in the form of a protocol. */
export interface CallsOutput<Call, ServerCall> {
  /** A call for the client begins. `id`: unique in the answer. */
  begin(step: string, toolName: string, id: string): Call
  /** A piece of the arguments, as JSON text. */
  write(call: Call, delta: string): void
  /** The arguments are complete. `sent`: what was written of them. Returns why the client cannot run it, if so. */
  written(call: Call, json: string, sent: string): string | undefined
  /** It was handed over: the client may run it. */
  done(call: Call): void
  /** A call that the server runs. `agent`: whose tool it is. */
  serverCall(step: string, call: { agent: string; toolName: string; json: string }): ServerCall
  serverResult(call: ServerCall, result: { output: string } | { error: string }): void
}

interface OpenCall<Call> {
  call: Call
  step: string
  toolName: string
  id: string
  /** Arguments that are complete. */
  json?: string
  /** Arguments so far; undefined once they are complete. */
  input: string | undefined
  /** The client cannot run it. */
  isBroken?: true
}

/** A call that the server runs, as it was sent. */
interface ShownCall {
  step: string
  agent: string
  toolName: string
  json: string
}

export interface ItemCallsOptions<Call, ServerCall> {
  output: CallsOutput<Call, ServerCall>
  /** Whether calls that the server runs are items. */
  showsServer: boolean
  /** Maximum length of an output in UTF-16 units. */
  toolOutputMaxChars: number
  /** Whether a path belongs to the answer. */
  isAnswer(step: string): boolean
}

/** A class, not closures: one for each open stream (decisions/0028). */
export class ItemCalls<Call, ServerCall> {
  private readonly output: CallsOutput<Call, ServerCall>
  private readonly options: ItemCallsOptions<Call, ServerCall>
  private readonly offered = new LazyMap<string, ReadonlyMap<string, ToolSpec>>()
  /** Calls of the client's tools that wait for approval. */
  private readonly gated = new LazyMap<string, EntryOf<'tool-call'>>()
  private readonly routers = new LazySet<string>()
  /** Steps of running tools. */
  private readonly toolSteps = new LazySet<string>()
  private readonly above = createAgentsAbove()
  private readonly open = new LazyMap<string, OpenCall<Call>>()
  private readonly running = new LazyMap<string, { shown: ShownCall; call: ServerCall }>()
  private readonly usedIds = new LazySet<string>()
  /** JSON text of the arguments with which calls were approved, if they are others. */
  private readonly edits = new LazyMap<string, string>()
  private isHandingOver = false
  private handedOverAt: string[] = []
  private handedOverBefore: string[] = []
  private failure: ErrorValue | undefined = undefined

  constructor(options: ItemCallsOptions<Call, ServerCall>) {
    this.options = options
    this.output = options.output
  }

  /** Why the answer fails: a call that was sent was not handed over. */
  fault(): ErrorValue | undefined {
    for (const { toolName } of this.open.values()) this.failure ??= lost(toolName, 'it has no outcome')
    return this.failure
  }

  /** Whether calls at or under a path were handed over. */
  handedOver(root = ''): boolean {
    return this.handedOverAt.some((path) => isUnder(path, root))
  }

  /** The same, also with those of answers before this one. */
  hasHandedOver(root = ''): boolean {
    return this.handedOver(root) || this.handedOverBefore.some((path) => isUnder(path, root))
  }

  /** The answer begins anew, and calls before it are no part of it. Those that are not done, or waited, are in the new one. */
  restart(): void {
    this.handedOverBefore.push(...this.handedOverAt)
    this.handedOverAt = []
    this.failure = undefined
    for (const open of this.open.values()) {
      const { step, toolName, id, json, input } = open
      open.call = this.output.begin(step, toolName, id)
      if (json !== undefined) {
        delete open.isBroken
        this.complete(Object.assign(open, { input: '' }), json)
      } else if (input !== undefined && input !== '') this.output.write(open.call, input)
    }
    for (const [key, { shown }] of this.running) {
      this.running.set(key, { shown, call: this.output.serverCall(shown.step, shown) })
    }
  }

  runStart(entry: EntryOf<'run-start'>): void {
    const { handOver } = entry
    this.above.apply(entry)
    this.isHandingOver = handOver === true
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

  private begin(step: string, toolName: string, toolCallId: string): OpenCall<Call> {
    const id = this.uniqueId(toolCallId)
    const open: OpenCall<Call> = { call: this.output.begin(step, toolName, id), step, toolName, id, input: '' }
    this.open.set(callKey(step, toolCallId), open)
    return open
  }

  /** Ids repeat if a provider counts calls from 0 in each message. */
  private uniqueId(toolCallId: string): string {
    let id = toolCallId
    for (let n = 2; this.usedIds.has(id); n++) id = `${toolCallId}-${n}`
    this.usedIds.add(id)
    return id
  }

  private complete(open: OpenCall<Call>, json: string): void {
    const sent = open.input ?? ''
    open.input = undefined
    open.json = json
    const why = this.output.written(open.call, json, sent)
    if (why === undefined) return
    open.isBroken = true
    this.failure ??= lost(open.toolName, why)
  }

  inputStart(entry: EntryOf<'tool-input-start'>): void {
    if (this.isClients(entry) && !this.isGated(entry)) this.begin(entry.step, entry.toolName, entry.id)
  }

  inputDelta({ step, id, delta }: EntryOf<'tool-input-delta'>): void {
    const open = this.open.get(callKey(step, id))
    if (open?.input === undefined || delta === '') return
    open.input += delta
    this.output.write(open.call, delta)
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
      const agent = this.above.at(step).at(-1)!
      const shown = { step, agent, toolName, json }
      this.running.set(key, { shown, call: this.output.serverCall(step, shown) })
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
    const open = this.open.get(key)
    if (open !== undefined) {
      this.open.delete(key)
      if (outcome !== 'handed-over') return void (this.failure ??= lost(open.toolName, messageOf(result)))
      this.handedOverAt.push(open.step)
      return open.isBroken ? undefined : this.output.done(open.call)
    }
    const running = this.running.get(key)
    if (running === undefined) return
    this.running.delete(key)
    const text = toToolOutput(result, this.options.toolOutputMaxChars)
    const failed = isError === true || outcome !== undefined
    this.output.serverResult(running.call, failed ? { error: text } : { output: text })
  }

  /** The attempt of a step was lost. Returns whether a call for the client was lost with it. */
  reset(entry: EntryOf<'step-reset'>): boolean {
    const { step: path } = entry
    this.above.apply(entry)
    for (const [key, { shown }] of this.running) if (isUnder(shown.step, path)) this.running.delete(key)
    return [...this.open.values()].some(({ step }) => isUnder(step, path))
  }

  response(request: EntryOf<'request'>, { answer }: EntryOf<'response'>): void {
    if (answer?.kind !== 'approval' || answer.input === undefined || request.toolCallId === undefined) return
    this.edits.set(callKey(request.step, request.toolCallId), JSON.stringify(answer.input))
  }
}

function lost(toolName: string, why: string): ErrorValue {
  return { code: 'tool-call-lost', message: `The call of ${toolName} must not be run: ${why}.`.replace(/\.+$/u, '.') }
}

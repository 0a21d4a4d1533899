/**
 * Converts tool calls to OpenAI output.
 *
 * A call of a client tool ends the answer. It is streamed while the model writes it; if it is not handed over in the end, the
 * answer fails. One that needs approval is sent whole, once it was approved. Calls that the server runs are hidden, because the client would try to run them. With the extension
 * `tools` they are sent complete, each with its output, for every step before `after`. Calls inside a tool's own step
 * (of a sub-agent) stay hidden, and so does the `respond` call of a router.
 */
import type { EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { messageOf } from '../../part/error.ts'
import { callKey } from '../../fold/open-items.ts'
import { toOpenAiCallId } from '../../part/openai-call-id.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import type { ToolSpec } from '../../part/message.ts'
import type { ProviderMetadata } from '../../part/model-part.ts'
import { respondTool } from '../../part/respond.ts'
import { kindOf } from '../../part/step-kind.ts'
import { signedBy, toToolOutput, type OpenAiOutput } from './openai-output.ts'
import { LazyMap, LazySet } from '../../fold/lazy-map.ts'

export interface OpenAiCallsOptions {
  /** The protocol has no tool calls (text completion): a call of a client tool is a failure. */
  textOnly: boolean
  /** Show calls that the server runs. */
  showsServer: boolean
  toolOutputMaxChars: number
  output: OpenAiOutput
}

export interface OpenAiCalls {
  /** Why the answer fails: a call that was sent was not handed over or not completed. */
  fault(): ErrorValue | undefined
  /** Whether calls at or under a path were handed over to the client. */
  handedOver(root?: string): boolean
  /** Whether this is the `respond` call of a router, which no wire shows. */
  isHidden(call: { toolCallId: string; toolName: string }): boolean
  runStart(entry: EntryOf<'run-start'>): void
  stepStart(entry: EntryOf<'step-start'>): void
  stepFinish(path: string): void
  prompt(entry: EntryOf<'prompt'>): void
  inputStart(entry: EntryOf<'tool-input-start'>): void
  inputDelta(entry: EntryOf<'tool-input-delta'>): void
  call(entry: EntryOf<'tool-call'>): void
  result(entry: EntryOf<'tool-result'>): void
  response(request: EntryOf<'request'>, entry: EntryOf<'response'>): void
  /** The answer begins anew: its calls are counted from 0, and those before it are no part of it. */
  restart(): void
  /** Whether anything was sent for a path or below. */
  shownUnder(root: string): boolean
}

interface OpenAiCall {
  index: number
  id: string
  name: string
  step: string
  owner: 'client' | 'server'
  /** Arguments so far; undefined once the call is complete. */
  input?: string
  /** The provider's signature has been sent. */
  isSigned?: boolean
}

type NamedCall = Pick<EntryOf<'tool-call'>, 'step' | 'toolName' | 'providerMetadata'>

export function createOpenAiCalls(options: OpenAiCallsOptions): OpenAiCalls {
  return new Calls(options)
}

/** Class, not closures: one instance per answer, and most call no tool. `private`: see decisions/0028. */
class Calls implements OpenAiCalls {
  private readonly textOnly: boolean
  private readonly showsServer: boolean
  private readonly toolOutputMaxChars: number
  private readonly output: OpenAiOutput
  /** The client's tools, by model call. */
  private readonly offered = new LazyMap<string, ReadonlyMap<string, ToolSpec>>()
  /** Calls of the client's tools that wait for approval. They are sent when they are handed over. */
  private readonly gated = new LazyMap<string, EntryOf<'tool-call'>>()
  private readonly routers = new LazySet<string>()
  /** Steps of running tools. */
  private readonly toolSteps = new LazySet<string>()
  private readonly hiddenIds = new LazySet<string>()
  /** Calls that were sent and have no outcome yet. */
  private readonly open = new LazyMap<string, OpenAiCall>()
  private readonly usedIds = new LazySet<string>()
  private readonly shownAt = new LazySet<string>()
  /** JSON text of the arguments with which calls were approved, if they are others. */
  private readonly edits = new LazyMap<string, string>()
  private handedOverAt: string[] | undefined = undefined
  private isHandingOver = false
  private count = 0
  private failure: ErrorValue | undefined = undefined

  constructor({ textOnly, showsServer, toolOutputMaxChars, output }: OpenAiCallsOptions) {
    this.textOnly = textOnly
    this.showsServer = showsServer
    this.toolOutputMaxChars = toolOutputMaxChars
    this.output = output
  }

  private isClients(call: Pick<EntryOf<'tool-call'>, 'step' | 'toolName' | 'providerExecuted'>): boolean {
    if (call.providerExecuted === true || this.offered.get(call.step)?.has(call.toolName) !== true) return false
    // A called agent cannot hand its calls over: the client would answer in a conversation that does not have them.
    return !this.insideTool(call.step)
  }

  private isGated({ step, toolName }: { step: string; toolName: string }): boolean {
    return this.offered.get(step)?.get(toolName)?.approval === true
  }

  private show(entry: NamedCall, toolCallId: string, owner: OpenAiCall['owner'], input?: string) {
    const { step, toolName: name } = entry
    const shown: OpenAiCall = { index: this.count++, id: this.uniqueId(toolCallId), name, step, owner }
    if (input === undefined) shown.input = ''
    this.open.set(callKey(step, toolCallId), shown)
    this.shownAt.add(step)
    const signed = owner === 'client' ? signedBy(entry.providerMetadata) : undefined
    if (signed !== undefined) shown.isSigned = true
    this.output.call({ index: shown.index, id: shown.id, name, arguments: input ?? '', signed })
  }

  /** Ids repeat if a provider counts calls from 0 in each message, or across parallel branches. */
  private uniqueId(toolCallId: string): string {
    let id = toOpenAiCallId(toolCallId)
    for (let n = 2; this.usedIds.has(id); n++) id = toOpenAiCallId(`${toolCallId}-${n}`)
    this.usedIds.add(id)
    return id
  }

  private complete(shown: OpenAiCall, input: string, metadata: ProviderMetadata | undefined): void {
    const sent = shown.input ?? ''
    delete shown.input
    // Some providers stream no empty arguments, or only a part of them.
    const rest = input.startsWith(sent) ? input.slice(sent.length) : ''
    const signed = shown.isSigned === true ? undefined : signedBy(metadata)
    if (rest !== '' || signed !== undefined) this.output.callArguments(shown.index, rest, signed)
  }

  private insideTool(step: string): boolean {
    for (let path = step; path !== ''; path = parentPath(path)) if (this.toolSteps.has(path)) return true
    return false
  }

  fault(): ErrorValue | undefined {
    for (const { owner, name } of this.open.values())
      if (owner === 'client') this.failure ??= lost(name, 'it has no outcome')
    return this.failure
  }

  handedOver(root = ''): boolean {
    return this.handedOverAt?.some((path) => isUnder(path, root)) ?? false
  }

  isHidden({ toolCallId, toolName }: { toolCallId: string; toolName: string }): boolean {
    return toolName === respondTool && this.hiddenIds.has(toolCallId)
  }

  runStart({ handOver }: EntryOf<'run-start'>): void {
    this.isHandingOver = handOver === true
  }

  stepStart(entry: EntryOf<'step-start'>): void {
    const { step, toolCallId, handoff } = entry
    if (kindOf(entry) === 'router') this.routers.add(step)
    // The calls of an agent that takes over are those of the answer.
    if (toolCallId !== undefined && handoff !== true) this.toolSteps.add(step)
  }

  stepFinish(path: string): void {
    if (!this.offered.delete(path)) return
    for (const { step, name, input } of this.open.values()) {
      if (step === path && input !== undefined) this.failure ??= lost(name, 'its arguments were cut off')
    }
  }

  prompt({ step, tools = [] }: EntryOf<'prompt'>): void {
    if (this.isHandingOver)
      this.offered.set(step, new Map(tools.flatMap((tool) => (tool.client ? [[tool.name, tool] as const] : []))))
  }

  inputStart(entry: EntryOf<'tool-input-start'>): void {
    if (!this.textOnly && this.isClients(entry) && !this.isGated(entry)) this.show(entry, entry.id, 'client')
  }

  inputDelta({ step, id, delta }: EntryOf<'tool-input-delta'>): void {
    const shown = this.open.get(callKey(step, id))
    if (shown?.input === undefined || delta === '') return
    shown.input += delta
    this.output.callArguments(shown.index, delta)
  }

  call(entry: EntryOf<'tool-call'>): void {
    const { step, toolCallId, toolName } = entry
    if (toolName === respondTool && this.routers.has(parentPath(step))) {
      this.hiddenIds.add(toolCallId)
      return
    }
    const input = entry.input.trim() === '' ? '{}' : entry.input
    if (this.isClients(entry)) {
      const shown = this.open.get(callKey(step, toolCallId))
      if (this.textOnly) this.failure ??= unsayable(toolName)
      else if (this.isGated(entry)) this.gated.set(callKey(step, toolCallId), entry)
      else if (shown === undefined) this.show(entry, toolCallId, 'client', input)
      else this.complete(shown, input, entry.providerMetadata)
    } else if (this.showsServer && !this.textOnly && !isUnder(step, 'after') && !this.insideTool(step)) {
      this.show(entry, toolCallId, 'server', input)
    }
  }

  result(entry: EntryOf<'tool-result'>): void {
    const { step, toolCallId, result, outcome } = entry
    const key = callKey(step, toolCallId)
    const waited = this.gated.get(key)
    if (waited !== undefined && entry.preliminary !== true) {
      this.gated.delete(key)
      // One that was denied is told to the model alone: this client never heard of it.
      if (outcome === 'handed-over')
        this.show(waited, toolCallId, 'client', this.edits.get(key) ?? (waited.input.trim() || '{}'))
    }
    const shown = this.open.get(key)
    if (shown === undefined || entry.preliminary === true) return
    this.open.delete(key)
    if (shown.owner === 'client') {
      if (outcome === 'handed-over') (this.handedOverAt ??= []).push(shown.step)
      else this.failure ??= lost(shown.name, messageOf(result))
      return
    }
    this.shownAt.add(step)
    this.output.toolOutput(shown.id, toToolOutput(result, this.toolOutputMaxChars))
  }

  response(request: EntryOf<'request'>, { answer }: EntryOf<'response'>): void {
    if (answer?.kind !== 'approval' || answer.input === undefined || request.toolCallId === undefined) return
    this.edits.set(callKey(request.step, request.toolCallId), JSON.stringify(answer.input))
  }

  restart(): void {
    this.count = 0
    this.handedOverAt = undefined
  }

  shownUnder(root: string): boolean {
    for (const path of this.shownAt) if (isUnder(path, root)) return true
    return false
  }
}

function lost(toolName: string, why: string): ErrorValue {
  return { code: 'tool-call-lost', message: `The call of ${toolName} must not be run: ${why}.`.replace(/\.+$/u, '.') }
}

function unsayable(toolName: string): ErrorValue {
  const cure = 'Use POST /v1/chat/completions.'
  return {
    code: 'tool-call-lost',
    message: `The answer calls ${toolName}, which a text completion cannot contain. ${cure}`,
  }
}

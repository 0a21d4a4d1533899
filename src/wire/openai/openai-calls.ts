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
import { isUnder, parentPath } from '../../part/path.ts'
import type { ToolSpec } from '../../part/message.ts'
import { respondTool } from '../../part/respond.ts'
import { kindOf } from '../../part/step-kind.ts'
import { toToolOutput, type OpenAiOutput } from './openai-output.ts'
import { LateMap, LateSet } from '../../fold/late-map.ts'

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

interface Shown {
  index: number
  id: string
  name: string
  step: string
  owner: 'client' | 'server'
  /** Arguments so far; undefined once the call is complete. */
  input?: string
}

export function createOpenAiCalls(options: OpenAiCallsOptions): OpenAiCalls {
  const { textOnly, showsServer, toolOutputMaxChars, output } = options
  /** The client's tools, by model call. */
  const offered = new LateMap<string, ReadonlyMap<string, ToolSpec>>()
  /** Calls of the client's tools that wait for approval. They are sent when they are handed over. */
  const gated = new LateMap<string, EntryOf<'tool-call'>>()
  const routers = new LateSet<string>()
  /** Steps of running tools. */
  const toolSteps = new LateSet<string>()
  const hiddenIds = new LateSet<string>()
  /** Calls that were sent and have no outcome yet. */
  const open = new LateMap<string, Shown>()
  const usedIds = new LateSet<string>()
  const shownAt = new LateSet<string>()
  /** JSON text of the arguments with which calls were approved, if they are others. */
  const edits = new LateMap<string, string>()
  let handedOverAt: string[] = []
  let isHandingOver = false
  let count = 0
  let fault: ErrorValue | undefined

  const isClients = ({
    step,
    toolName,
    providerExecuted,
  }: Pick<EntryOf<'tool-call'>, 'step' | 'toolName' | 'providerExecuted'>) =>
    providerExecuted !== true && offered.get(step)?.has(toolName) === true
  const isGated = ({ step, toolName }: { step: string; toolName: string }) =>
    offered.get(step)?.get(toolName)?.approval === true

  function show(entry: { step: string; toolName: string }, toolCallId: string, owner: Shown['owner'], input?: string) {
    const { step, toolName: name } = entry
    const shown: Shown = { index: count++, id: uniqueId(toolCallId), name, step, owner }
    if (input === undefined) shown.input = ''
    open.set(callKey(step, toolCallId), shown)
    shownAt.add(step)
    output.call({ index: shown.index, id: shown.id, name, arguments: input ?? '' })
  }

  /** Ids repeat if a provider counts calls from 0 in each message, or across parallel branches. */
  function uniqueId(toolCallId: string): string {
    let id = toolCallId
    for (let n = 2; usedIds.has(id); n++) id = `${toolCallId}-${n}`
    usedIds.add(id)
    return id
  }

  function complete(shown: Shown, input: string): void {
    const sent = shown.input ?? ''
    delete shown.input
    // Some providers stream no empty arguments, or only a part of them.
    const rest = input.startsWith(sent) ? input.slice(sent.length) : ''
    if (rest !== '') output.callArguments(shown.index, rest)
  }

  function insideTool(step: string): boolean {
    for (let path = step; path !== ''; path = parentPath(path)) if (toolSteps.has(path)) return true
    return false
  }

  return {
    fault() {
      for (const { owner, name } of open.values()) if (owner === 'client') fault ??= lost(name, 'it has no outcome')
      return fault
    },
    handedOver: (root = '') => handedOverAt.some((path) => isUnder(path, root)),
    isHidden: ({ toolCallId, toolName }) => toolName === respondTool && hiddenIds.has(toolCallId),
    runStart({ handOver }) {
      isHandingOver = handOver === true
    },
    stepStart(entry) {
      const { step, toolCallId } = entry
      if (kindOf(entry) === 'router') routers.add(step)
      if (toolCallId !== undefined) toolSteps.add(step)
    },
    stepFinish(path) {
      if (!offered.delete(path)) return
      for (const { step, name, input } of open.values()) {
        if (step === path && input !== undefined) fault ??= lost(name, 'its arguments were cut off')
      }
    },
    prompt({ step, tools = [] }) {
      if (isHandingOver)
        offered.set(step, new Map(tools.flatMap((tool) => (tool.client ? [[tool.name, tool] as const] : []))))
    },
    inputStart(entry) {
      if (!textOnly && isClients(entry) && !isGated(entry)) show(entry, entry.id, 'client')
    },
    inputDelta({ step, id, delta }) {
      const shown = open.get(callKey(step, id))
      if (shown?.input === undefined || delta === '') return
      shown.input += delta
      output.callArguments(shown.index, delta)
    },
    call(entry) {
      const { step, toolCallId, toolName } = entry
      if (toolName === respondTool && routers.has(parentPath(step))) {
        hiddenIds.add(toolCallId)
        return
      }
      const input = entry.input.trim() === '' ? '{}' : entry.input
      if (isClients(entry)) {
        const shown = open.get(callKey(step, toolCallId))
        if (textOnly) fault ??= unsayable(toolName)
        else if (isGated(entry)) gated.set(callKey(step, toolCallId), entry)
        else if (shown === undefined) show(entry, toolCallId, 'client', input)
        else complete(shown, input)
      } else if (showsServer && !textOnly && !isUnder(step, 'after') && !insideTool(step)) {
        show(entry, toolCallId, 'server', input)
      }
    },
    result(entry) {
      const { step, toolCallId, result, outcome } = entry
      const key = callKey(step, toolCallId)
      const waited = gated.get(key)
      if (waited !== undefined && entry.preliminary !== true) {
        gated.delete(key)
        // One that was denied is told to the model alone: this client never heard of it.
        if (outcome === 'handed-over')
          show(waited, toolCallId, 'client', edits.get(key) ?? (waited.input.trim() || '{}'))
      }
      const shown = open.get(key)
      if (shown === undefined || entry.preliminary === true) return
      open.delete(key)
      if (shown.owner === 'client') {
        if (outcome === 'handed-over') handedOverAt.push(shown.step)
        else fault ??= lost(shown.name, messageOf(result))
        return
      }
      shownAt.add(step)
      output.toolOutput(shown.id, toToolOutput(result, toolOutputMaxChars))
    },
    response(request, { answer }) {
      if (answer?.kind !== 'approval' || answer.input === undefined || request.toolCallId === undefined) return
      edits.set(callKey(request.step, request.toolCallId), JSON.stringify(answer.input))
    },
    restart() {
      count = 0
      handedOverAt = []
    },
    shownUnder(root) {
      for (const path of shownAt) if (isUnder(path, root)) return true
      return false
    },
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

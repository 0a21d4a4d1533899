/**
 * Tool calls → what an OpenAI client is shown of them.
 *
 * A call of a client's tool is the answer's last word: it is shown while it is written, and only one that is handed over
 * in the end may stand. Calls that the server runs are hidden: a client would try to run them. With the extension `tools`
 * they are shown whole, each with its output, of every step before `after`; not what a tool does inside its own step (a
 * sub-agent's calls are the tool's affair), and never the `respond` with which a router hands over.
 */
import type { EntryOf } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import { messageOf } from '../part/error.ts'
import { callKey } from '../part/open-items.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { respondTool } from '../part/respond.ts'
import { toToolOutput, type OpenAiOutput } from './openai-output.ts'

export interface OpenAiCallsOptions {
  /** The answer has no place for calls: that of a client's tool cannot be said. */
  textOnly: boolean
  /** Calls that the server runs are shown. */
  showsServer: boolean
  toolOutputMaxChars: number
  output: OpenAiOutput
}

export interface OpenAiCalls {
  /** Why the answer cannot stand: a call that was shown was not handed over, or was never completed. */
  fault(): ErrorValue | undefined
  /** Calls of the client's that it has been given, at or under a path. */
  handedOver(root?: string): boolean
  /** Whether no wire shows this call: the hand-over of a router. */
  isHidden(call: { toolCallId: string; toolName: string }): boolean
  runStart(entry: EntryOf<'run-start'>): void
  stepStart(entry: EntryOf<'step-start'>): void
  stepFinish(path: string): void
  prompt(entry: EntryOf<'prompt'>): void
  inputStart(entry: EntryOf<'tool-input-start'>): void
  inputDelta(entry: EntryOf<'tool-input-delta'>): void
  call(entry: EntryOf<'tool-call'>): void
  result(entry: EntryOf<'tool-result'>): void
  /** Whether anything that was shown lies at or under a path. */
  shownUnder(root: string): boolean
}

interface Shown {
  index: number
  id: string
  name: string
  step: string
  owner: 'client' | 'server'
  /** Arguments so far; undefined once the call is whole. */
  input?: string
}

export function createOpenAiCalls(options: OpenAiCallsOptions): OpenAiCalls {
  const { textOnly, showsServer, toolOutputMaxChars, output } = options
  /** Names of the tools that this client runs, by the model call that was offered them. */
  const offered = new Map<string, ReadonlySet<string>>()
  const routers = new Set<string>()
  /** Steps in which a tool runs. */
  const toolSteps = new Set<string>()
  const hiddenIds = new Set<string>()
  /** Calls without outcome that were shown. */
  const open = new Map<string, Shown>()
  const usedIds = new Set<string>()
  const shownAt = new Set<string>()
  const handedOverAt: string[] = []
  let isHandingOver = false
  let count = 0
  let fault: ErrorValue | undefined

  const isClients = ({
    step,
    toolName,
    providerExecuted,
  }: Pick<EntryOf<'tool-call'>, 'step' | 'toolName' | 'providerExecuted'>) =>
    providerExecuted !== true && offered.get(step)?.has(toolName) === true

  function show(entry: { step: string; toolName: string }, toolCallId: string, owner: Shown['owner'], input?: string) {
    const { step, toolName: name } = entry
    const shown: Shown = { index: count++, id: uniqueId(toolCallId), name, step, owner }
    if (input === undefined) shown.input = ''
    open.set(callKey(step, toolCallId), shown)
    shownAt.add(step)
    output.call({ index: shown.index, id: shown.id, name, arguments: input ?? '' })
  }

  /** Providers that count their calls from 0 repeat an id in the next message, and so do branches that speak at once. */
  function uniqueId(toolCallId: string): string {
    let id = toolCallId
    for (let n = 2; usedIds.has(id); n++) id = `${toolCallId}-${n}`
    usedIds.add(id)
    return id
  }

  function complete(shown: Shown, input: string): void {
    const sent = shown.input ?? ''
    delete shown.input
    // Some providers stream nothing of arguments that are empty, or less than they give in the end.
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
    stepStart({ step, stepType, toolCallId }) {
      if (stepType === 'router') routers.add(step)
      if (toolCallId !== undefined) toolSteps.add(step)
    },
    stepFinish(path) {
      if (!offered.delete(path)) return
      for (const { step, name, input } of open.values()) {
        if (step === path && input !== undefined) fault ??= lost(name, 'its arguments were cut off')
      }
    },
    prompt({ step, tools = [] }) {
      if (isHandingOver) offered.set(step, new Set(tools.flatMap(({ client, name }) => (client ? [name] : []))))
    },
    inputStart(entry) {
      if (!textOnly && isClients(entry)) show(entry, entry.id, 'client')
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
        else if (shown === undefined) show(entry, toolCallId, 'client', input)
        else complete(shown, input)
      } else if (showsServer && !textOnly && !isUnder(step, 'after') && !insideTool(step)) {
        show(entry, toolCallId, 'server', input)
      }
    },
    result(entry) {
      const { step, toolCallId, result, outcome } = entry
      const key = callKey(step, toolCallId)
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
  const cure = 'Ask with POST /v1/chat/completions.'
  return {
    code: 'tool-call-lost',
    message: `The answer calls ${toolName}, which a text completion cannot say. ${cure}`,
  }
}

/**
 * Codex: `codex exec --json`. A thread has turns, and a turn has items, which start, change and complete in any order.
 *
 * | event | parts |
 * | --- | --- |
 * | `thread.started` | `session-info` |
 * | `item.*` | a text, reasoning, a call of a tool with its result, `data` (`todo-list`) or a `warning`: `items.ts` |
 * | `turn.completed` | `usage`; `finish` at the end |
 * | `turn.failed` | `error` and `finish` at the end |
 * | `error` | `warning`: Codex may get over it |
 * | all others | `cli-output` |
 */
import type { ErrorValue } from '../../part/error.ts'
import type { CliResult } from '../outcome.ts'
import type { ProviderMetadata } from '../../part/model-part.ts'
import { toUsage, type Usage } from '../../part/usage.ts'
import type { Dialect, DialectOptions, TranscriptOutput } from '../transcript.ts'
import { createUsageMeter, toFinishUsage, type Tokens } from '../usage-meter.ts'
import { isObject, numberOf, objectOf, textOf, toResultValue } from '../values.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'

export function createCodexDialect(said: TranscriptOutput, { usedBefore }: DialectOptions): Dialect {
  const meter = createUsageMeter(said.part)
  const items = createItems(said)
  let before: Usage | undefined
  let isInTurn = false
  let result: CliResult | undefined
  let lastError: string | undefined
  let tokens: Tokens | undefined

  function completed(usage: Record<string, unknown>): void {
    // The counts are those of the whole thread so far, over all runs that have resumed it.
    tokens = minus(toTokens(usage), before)
    isInTurn = false
    // Before the usage: a reader that counts it sees that nothing more comes.
    result = { finishReason: { unified: 'stop', raw: undefined }, usage: toFinishUsage(tokens), ...metadata(usage) }
    meter.settle(said.model, tokens, undefined)
  }

  return {
    who: 'Codex',
    event(event) {
      const { type } = event
      switch (type) {
        case 'thread.started': {
          const sessionId = textOf(event['thread_id'])
          if (sessionId !== undefined) before ??= usedBefore?.(sessionId)
          return said.session({ sessionId })
        }
        // As old versions call it.
        case 'session.created':
          return said.session({ sessionId: textOf(event['session_id']) })
        case 'turn.started':
          result = undefined
          isInTurn = true
          return true
        case 'turn.completed':
          completed(objectOf(event['usage']))
          return true
        case 'turn.failed': {
          isInTurn = false
          const message = messageOf(event['error']) ?? lastError ?? 'Codex failed.'
          const usage = tokens === undefined ? meter.total() : toFinishUsage(tokens)
          result = { error: toError(message), finishReason: { unified: 'error', raw: 'turn.failed' }, usage }
          return true
        }
        case 'error':
          lastError = messageOf(event)
          if (lastError === undefined) return false
          said.part({ type: 'warning', code: 'codex-error', message: lastError })
          return true
        case 'session_meta':
        case 'response_item':
        case 'turn_context':
          if (!isObject(event['payload'])) return false
          said.refuse(rolloutError)
          return false
        default:
          return items.event(event)
      }
    },
    get result() {
      return result
    },
    // Ctrl-C: it exits with 1, without a word. A failure is reported before: `turn.failed`, or an error.
    isInterrupt: ({ code }) => code === 1 && isInTurn && lastError === undefined,
    rest: () => ({ usage: meter.total(), ...(lastError !== undefined && { error: toError(lastError) }) }),
    get text() {
      return items.lastText
    },
  }
}

/** Input tokens include the cached ones. */
function toTokens(usage: Record<string, unknown>): Tokens {
  return {
    input: numberOf(usage['input_tokens']),
    cacheRead: numberOf(usage['cached_input_tokens']),
    cacheWrite: numberOf(usage['cache_write_input_tokens']),
    output: numberOf(usage['output_tokens']),
    reasoning: numberOf(usage['reasoning_output_tokens']),
    raw: usage,
  }
}

/** The thread's usage, so that a run that resumes it can subtract the earlier usage. */
function metadata(usage: Record<string, unknown>): Pick<CliResult, 'providerMetadata'> {
  return { providerMetadata: { codex: { threadUsage: usage } } as ProviderMetadata }
}

function minus(tokens: Tokens, before: Usage | undefined): Tokens {
  if (before === undefined) return tokens
  const less = (count: number | undefined, earlier = 0) =>
    count === undefined ? undefined : Math.max(0, count - earlier)
  return {
    ...tokens,
    input: less(tokens.input, before.inputTokens),
    cacheRead: less(tokens.cacheRead, before.cachedInputTokens),
    cacheWrite: less(tokens.cacheWrite, before.cacheWriteInputTokens),
    output: less(tokens.output, before.outputTokens),
    reasoning: less(tokens.reasoning, before.reasoningTokens),
  }
}

/** The usage of a thread, as a report of one of its runs has it. */
export function threadUsageOf(metadata: ProviderMetadata | undefined): Usage | undefined {
  const usage = metadata?.['codex']?.['threadUsage']
  return isObject(usage) ? toUsage(toFinishUsage(toTokens(usage))) : undefined
}

function messageOf(error: unknown): string | undefined {
  return textOf(error) ?? textOf(objectOf(error)['message'])
}

function toError(message: string): ErrorValue {
  return { code: 'cli-failed', message }
}

const rolloutError: ErrorValue = {
  code: 'session-file',
  message:
    'This is a session file of Codex (~/.codex/sessions/…), not its output: it looks alike, but is another format. ' +
    'Record the output instead: codex exec --json "…" > out.jsonl',
}

/** The items of Codex's turns. A text may come as a whole or grow; a tool is called when its item is first seen. */
interface Text {
  /** Its emitted text. */
  text: string
  isReasoning: boolean
}

function createItems(said: TranscriptOutput) {
  /** Texts and tools that have not completed. */
  const texts = new Map<string, Text>()
  const tools = new Set<string>()
  const all = { event, lastText: '' }

  function event(given: Record<string, unknown>): boolean {
    if (given['type'] === 'item.plan.delta') {
      const id = textOf(given['item_id'])
      const delta = textOf(given['delta'])
      if (id === undefined || delta === undefined) return false
      const block = blockOf(id, false)
      grow(id, block, block.text + delta)
      return true
    }
    const stage = stages.get(given['type'])
    const item = given['item']
    if (stage === undefined || !isObject(item)) return false
    const id = textOf(item['id'])
    if (id === undefined) return false
    // Old versions have other words.
    const type = item['type'] ?? item['item_type']
    switch (type) {
      case 'agent_message':
      case 'assistant_message':
      case 'plan':
      case 'reasoning':
        return text(id, item, stage, type === 'reasoning')
      case 'todo_list':
        said.part({ type: 'data', name: 'todo-list', id, data: { items: item['items'] ?? [] } })
        return true
      case 'error':
        said.part({
          type: 'warning',
          code: 'codex-error',
          message: textOf(item['message']) ?? 'Codex reported an error.',
        })
        return true
      default: {
        const tool = toTool({ ...item, type })
        return tool !== undefined && call(id, tool, stage)
      }
    }
  }

  function blockOf(id: string, isReasoning: boolean): Text {
    let block = texts.get(id)
    if (block === undefined) {
      block = { text: '', isReasoning }
      texts.set(id, block)
      if (!isReasoning) all.lastText = ''
      said.part({ type: isReasoning ? 'reasoning-start' : 'text-start', id })
    }
    return block
  }

  function grow(id: string, block: Text, now: string): void {
    // Rewritten text cannot be withdrawn: only the text after it is new.
    const delta = now.slice(block.text.length)
    block.text = now.length > block.text.length ? now : block.text
    if (!block.isReasoning) all.lastText = block.text
    if (delta !== '') said.part({ type: block.isReasoning ? 'reasoning-delta' : 'text-delta', id, delta })
  }

  function text(id: string, item: Record<string, unknown>, stage: Stage, isReasoning: boolean): boolean {
    const now = textOf(item['text'])
    if (now === undefined && stage !== 'started') return false
    const block = blockOf(id, isReasoning)
    grow(id, block, now ?? '')
    if (stage !== 'completed') return true
    texts.delete(id)
    said.part({ type: block.isReasoning ? 'reasoning-end' : 'text-end', id })
    return true
  }

  function call(id: string, { toolName, input, result, isError, isDenied }: ToolItem, stage: Stage): boolean {
    if (!tools.has(id)) {
      const json = JSON.stringify(input)
      said.part({ type: 'tool-input-start', id, toolName, providerExecuted: true })
      said.part({ type: 'tool-input-delta', id, delta: json })
      said.part({ type: 'tool-input-end', id })
      said.part({ type: 'tool-call', toolCallId: id, toolName, input: json, providerExecuted: true })
      tools.add(id)
    }
    if (stage === 'started') return true
    const isDone = stage === 'completed'
    if (isDone) tools.delete(id)
    said.part({
      type: 'tool-result',
      toolCallId: id,
      toolName,
      result: toResultValue(result),
      isError,
      ...(!isDone && { preliminary: true }),
      ...(isDone && isDenied && { outcome: 'denied' as const }),
    })
    return true
  }

  return all
}

type Stage = 'started' | 'updated' | 'completed'
const stages: ReadonlyMap<unknown, Stage> = new Map([
  ['item.started', 'started'],
  ['item.updated', 'updated'],
  ['item.completed', 'completed'],
])

/** The items of Codex that are tool calls: their arguments and their results. */
interface ToolItem {
  toolName: string
  input: object
  result: unknown
  isError: boolean
  isDenied: boolean
}

/** Undefined for an item that is no call. */
function toTool(item: Record<string, unknown>): ToolItem | undefined {
  const { type, status } = item
  const isDenied = status === 'declined'
  const isError = isDenied || status === 'failed'
  const rest = { isError, isDenied }
  switch (type) {
    case 'command_execution': {
      const exitCode = numberOf(item['exit_code'])
      const result = omitUndefined({ output: textOf(item['aggregated_output']) ?? '', exitCode, status })
      const hasFailed = isError || (exitCode !== undefined && exitCode !== 0)
      return { ...rest, toolName: type, input: { command: item['command'] }, result, isError: hasFailed }
    }
    case 'file_change':
      return { ...rest, toolName: type, input: { changes: item['changes'] ?? [] }, result: { status } }
    case 'mcp_tool_call': {
      const { error } = item
      // As Claude Code names them: no provider refuses such a name.
      const toolName = `mcp__${textOf(item['server']) ?? ''}__${textOf(item['tool']) ?? ''}`
      const failure = textOf(objectOf(error)['message']) ?? error
      const result = item['result'] ?? failure ?? { status }
      const input = isObject(item['arguments'])
        ? item['arguments']
        : omitUndefined({ arguments: item['arguments'] ?? undefined })
      return { ...rest, toolName, input, result, isError: isError || (error !== undefined && error !== null) }
    }
    case 'web_search': {
      const { query, action } = item
      return { ...rest, toolName: type, input: omitUndefined({ query }), result: omitUndefined({ query, action }) }
    }
    case 'collab_tool_call': {
      const { id: _, type: __, item_type: ___, status: ____, agents_states: states, ...input } = item
      return { ...rest, toolName: type, input, result: omitUndefined({ status, states }) }
    }
    default:
      return undefined
  }
}

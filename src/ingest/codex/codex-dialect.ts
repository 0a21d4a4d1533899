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
import type { Dialect, DialectOptions, Said } from '../transcript.ts'
import { createUsageMeter, toFinishUsage, type Tokens } from '../usage-meter.ts'
import { isObject, numberOf, objectOf, textOf } from '../values.ts'
import { createItems } from './items.ts'

export function createCodexDialect(said: Said, { usedBefore }: DialectOptions): Dialect {
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
    // Before the usage: whoever counts it sees that nothing more comes.
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
    // Ctrl-C: it exits with 1, without a word. What fails is said before: `turn.failed`, or an error.
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

/** The thread's usage, so that a run that resumes it can take off what was used before. */
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

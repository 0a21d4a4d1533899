/**
 * Gemini CLI: `gemini -p … --output-format stream-json`. It repeats the user's prompt, which is no part of the answer.
 *
 * | event | parts |
 * | --- | --- |
 * | `init` | `session-info` |
 * | `message` of the assistant | a text, up to the next call or result of a tool |
 * | `tool_use`, `tool_result` | a call of a tool and its result |
 * | `error` | `warning`: Gemini CLI may get over it |
 * | `result` | `usage`; `finish` at the end |
 * | all others | `cli-output` |
 */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { ErrorValue } from '../../part/error.ts'
import type { ProviderMetadata } from '../../part/model-part.ts'
import type { CliResult } from '../outcome.ts'
import { toResultValue, isObject, numberOf, objectOf, textOf } from '../values.ts'
import type { Dialect, TranscriptOutput } from '../transcript.ts'
import { createUsageMeter, toFinishUsage, type Tokens } from '../usage-meter.ts'

/** Calls whose names are remembered: results do not repeat them. */
const mostCalls = 1000

export function createGeminiDialect(said: TranscriptOutput): Dialect {
  const meter = createUsageMeter(said.part)
  const names = new Map<string, string>()
  let result: CliResult | undefined
  let lastError: string | undefined
  let prompt: string | undefined
  let model: string | undefined
  let isOpen = false
  let blocks = 0
  /** The text since the last tool. */
  let pieces: string[] = []

  function closeText(): void {
    if (isOpen) said.part({ type: 'text-end', id: String(blocks) })
    isOpen = false
  }

  function message(event: Record<string, unknown>): boolean {
    const { role } = event
    const content = textOf(event['content'])
    if (content === undefined) return false
    if (role === 'user') {
      prompt ??= content
      return true
    }
    if (role !== 'assistant') return false
    const isPiece = event['delta'] === true
    if (!isPiece) closeText()
    if (!isOpen) {
      said.part({ type: 'text-start', id: String(++blocks) })
      isOpen = true
    }
    pieces.push(content)
    if (content !== '') said.part({ type: 'text-delta', id: String(blocks), delta: content })
    if (!isPiece) closeText()
    return true
  }

  function call(event: Record<string, unknown>): boolean {
    const id = textOf(event['tool_id'])
    if (id === undefined) return false
    closeText()
    pieces = []
    const toolName = textOf(event['tool_name']) ?? 'unknown'
    names.set(id, toolName)
    if (names.size > mostCalls) {
      for (const first of names.keys()) {
        names.delete(first)
        break
      }
    }
    const input = JSON.stringify(isObject(event['parameters']) ? event['parameters'] : {})
    said.part({ type: 'tool-input-start', id, toolName, providerExecuted: true })
    said.part({ type: 'tool-input-delta', id, delta: input })
    said.part({ type: 'tool-input-end', id })
    said.part({ type: 'tool-call', toolCallId: id, toolName, input, providerExecuted: true })
    return true
  }

  function callResult(event: Record<string, unknown>): boolean {
    const toolCallId = textOf(event['tool_id'])
    if (toolCallId === undefined) return false
    closeText()
    const toolName = names.get(toolCallId) ?? 'unknown'
    const isError = event['status'] === 'error'
    const value = isError ? (messageOf(event['error']) ?? event['output']) : event['output']
    said.part({ type: 'tool-result', toolCallId, toolName, result: toResultValue(value), isError })
    return true
  }

  function end(event: Record<string, unknown>): void {
    closeText()
    const stats = objectOf(event['stats'])
    const tokens = toTokens(stats)
    const error = messageOf(event['error']) ?? lastError ?? 'Gemini CLI failed.'
    const facts = { models: stats['models'], toolCalls: stats['tool_calls'], durationMs: stats['duration_ms'] }
    result = omitUndefined({
      error: event['status'] === 'error' ? toError(error) : undefined,
      finishReason: { unified: 'stop', raw: undefined },
      usage: toFinishUsage(tokens),
      providerMetadata: { gemini: omitUndefined(facts) } as ProviderMetadata,
    }) as CliResult
    // After the result: a reader that counts it sees that nothing more comes. The session names "auto", the stats name the model.
    const used = Object.entries(objectOf(stats['models'])).map(([name, each]) => ({
      name,
      tokens: toTokens(objectOf(each)),
    }))
    const spent = used.filter(({ tokens: { input, output } }) => (input ?? 0) + (output ?? 0) > 0)
    for (const { name, tokens: own } of spent) meter.share(name, own)
    const most = spent.toSorted((a, b) => (b.tokens.output ?? 0) - (a.tokens.output ?? 0))[0]
    model = most?.name
    meter.settle(model ?? said.model, tokens, undefined)
  }

  return {
    who: 'Gemini CLI',
    exitCodes: {
      41: 'not signed in',
      42: 'bad input',
      44: 'sandbox failed',
      52: 'bad configuration',
      53: 'turn limit',
    },
    event(event) {
      switch (event['type']) {
        case 'init':
          return said.session({ sessionId: textOf(event['session_id']), model: textOf(event['model']) })
        case 'message':
          return message(event)
        case 'tool_use':
          return call(event)
        case 'tool_result':
          return callResult(event)
        case 'error': {
          const text = messageOf(event)
          if (text === undefined) return false
          if (event['severity'] !== 'warning') lastError = text
          said.part({ type: 'warning', code: 'gemini-error', message: text })
          return true
        }
        case 'result':
          end(event)
          return true
        default:
          return false
      }
    },
    get model() {
      return model
    },
    get result() {
      return result
    },
    rest: () => ({ usage: meter.total(), ...(lastError !== undefined && { error: toError(lastError) }) }),
    get text() {
      return pieces.join('')
    },
    get prompt() {
      return prompt
    },
  }
}

/** Input tokens include the cached ones. The rest of the total is thinking and the results of tools. */
function toTokens(stats: Record<string, unknown>): Tokens {
  const input = numberOf(stats['input_tokens'])
  const output = numberOf(stats['output_tokens'])
  // Its thinking is in the total only.
  const thinking = (numberOf(stats['total_tokens']) ?? 0) - (input ?? 0) - (output ?? 0)
  const tokens = { input, cacheRead: numberOf(stats['cached']), raw: stats }
  return thinking > 0 ? { ...tokens, output: (output ?? 0) + thinking, reasoning: thinking } : { ...tokens, output }
}

function messageOf(error: unknown): string | undefined {
  return textOf(error) ?? textOf(objectOf(error)['message'])
}

function toError(message: string): ErrorValue {
  return { code: 'cli-failed', message }
}

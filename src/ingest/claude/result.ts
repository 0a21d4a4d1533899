/** The last line of Claude Code, `result`: how it ended, what it used, and what that cost. */
import { compact } from '../../part/compact.ts'
import type { ErrorValue } from '../../part/error.ts'
import type { FinishReason, ProviderMetadata } from '../../part/model-part.ts'
import type { CliResult, FinishUsage } from '../outcome.ts'
import { toFinishUsage, type Tokens } from '../usage-meter.ts'
import { isObject, numberOf, objectOf, textOf } from '../values.ts'

/** The usage of the API: its input tokens are those that were not cached. */
export function toTokens(usage: Record<string, unknown>): Tokens {
  const plain = numberOf(usage['input_tokens'])
  const cacheRead = numberOf(usage['cache_read_input_tokens'])
  const cacheWrite = numberOf(usage['cache_creation_input_tokens'])
  const hasInput = plain !== undefined || cacheRead !== undefined || cacheWrite !== undefined
  return {
    input: hasInput ? (plain ?? 0) + (cacheRead ?? 0) + (cacheWrite ?? 0) : undefined,
    cacheRead,
    cacheWrite,
    output: numberOf(usage['output_tokens']),
    reasoning: numberOf(objectOf(usage['output_tokens_details'])['thinking_tokens']),
    raw: usage,
  }
}

/** `said`: the usage if the line has none. */
export function toResult(line: Record<string, unknown>, said: FinishUsage): CliResult {
  const { structured_output: structuredOutput } = line
  const tokens = tokensOf(line)
  const facts = {
    subtype: line['subtype'],
    costUsd: costOf(line),
    numTurns: line['num_turns'],
    durationMs: line['duration_ms'],
    durationApiMs: line['duration_api_ms'],
    cacheCreationInputTokens: tokens?.cacheWrite,
    cacheReadInputTokens: tokens?.cacheRead,
    thinkingTokens: tokens?.reasoning,
    modelUsage: line['modelUsage'],
    permissionDenials: line['permission_denials'],
    terminalReason: line['terminal_reason'],
    apiErrorStatus: line['api_error_status'],
  }
  return compact({
    error: errorOf(line),
    finishReason: toFinishReason(line),
    usage: tokens === undefined ? said : toFinishUsage(tokens),
    cost: costOf(line),
    structuredOutput: structuredOutput ?? undefined,
    providerMetadata: { claude: compact(facts) } as ProviderMetadata,
  }) as CliResult
}

/** What it reports, if it does: stopped in the middle of a message, it counts that message nowhere but in its price. */
export function tokensOf(line: Record<string, unknown>): Tokens | undefined {
  const { usage } = line
  if (!isObject(usage)) return undefined
  const tokens = toTokens(usage)
  const hasNone = !tokens.input && !tokens.output
  return hasNone && isAborted(line) ? undefined : tokens
}

/** `aborted_streaming`, `aborted_tools`: a signal has stopped it, and it had the time to say so. */
function isAborted({ terminal_reason: reason }: Record<string, unknown>): boolean {
  return typeof reason === 'string' && reason.startsWith('aborted')
}

/** Old versions call it `cost_usd`. */
export function costOf(line: Record<string, unknown>): number | undefined {
  return numberOf(line['total_cost_usd']) ?? numberOf(line['cost_usd'])
}

function errorOf(line: Record<string, unknown>): ErrorValue | undefined {
  const subtype = textOf(line['subtype']) ?? ''
  const isError = line['is_error'] ?? subtype.startsWith('error')
  if (isError !== true) return undefined
  if (isAborted(line)) return { code: 'interrupted', message: 'Claude Code was interrupted.' }
  const errors = Array.isArray(line['errors']) ? line['errors'].filter((each) => typeof each === 'string') : []
  const said = errors.join('; ') || textOf(line['result'])
  return { code: 'cli-failed', message: said === undefined || said === '' ? `Claude Code failed: ${subtype}.` : said }
}

const reasons: ReadonlyMap<string, FinishReason['unified']> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool-calls'],
  ['refusal', 'content-filter'],
])

function toFinishReason(line: Record<string, unknown>): FinishReason {
  const subtype = textOf(line['subtype'])
  // For example `error_max_turns`, which is no failure by itself.
  if (subtype !== undefined && subtype !== 'success') return { unified: 'other', raw: subtype }
  const raw = textOf(line['stop_reason'])
  return { unified: raw === undefined ? 'stop' : (reasons.get(raw) ?? 'other'), raw }
}

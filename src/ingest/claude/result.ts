/** The last line of Claude Code, `result`: its outcome, its usage and its cost. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { ErrorValue } from '../../part/error.ts'
import type { FinishReason, ProviderMetadata } from '../../part/model-part.ts'
import { ownValue } from '../../part/own-value.ts'
import type { CliResult } from '../outcome.ts'
import type { Tokens } from '../usage-meter.ts'
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

interface ReportedTotals {
  who: string
  key: string
  /** The cost of the run so far, and the usage of its models. */
  costUsd: number | undefined
  modelUsage: unknown
}

/** The result without its usage: that of the turns before counts as well. */
export function toResult(
  line: Record<string, unknown>,
  { who, key, costUsd, modelUsage }: ReportedTotals,
): Omit<CliResult, 'usage' | 'cost'> {
  const { structured_output: structuredOutput } = line
  const tokens = tokensOf(line)
  const facts = {
    subtype: line['subtype'],
    costUsd,
    numTurns: line['num_turns'],
    durationMs: line['duration_ms'],
    durationApiMs: line['duration_api_ms'],
    cacheCreationInputTokens: tokens?.cacheWrite,
    cacheReadInputTokens: tokens?.cacheRead,
    thinkingTokens: tokens?.reasoning,
    modelUsage,
    permissionDenials: line['permission_denials'],
    terminalReason: line['terminal_reason'],
    apiErrorStatus: line['api_error_status'],
  }
  return omitUndefined({
    error: errorOf(line, who),
    finishReason: toFinishReason(line),
    structuredOutput: structuredOutput ?? undefined,
    providerMetadata: { [key]: omitUndefined(facts) } as ProviderMetadata,
  }) as CliResult
}

/**
 * The cost of the run. The total of a line is that of its session, and a resumed session counts its earlier runs: usage since the
 * result before is of this run only. Old versions do not tell that, so their first total counts as it is.
 */
export function createPaid() {
  let before = 0
  let session: unknown
  let paid: number | undefined
  let models: Record<string, Record<string, unknown>> = {}

  return {
    /** Returns the cost of the run, this turn included. */
    add(line: Record<string, unknown>): number | undefined {
      const total = costOf(line)
      const since = line['model_usage_since_last_result']
      // Of another session in the same output, it begins again.
      if (line['session_id'] !== session) before = 0
      session = line['session_id']
      const more = total === undefined ? undefined : total - before
      before = total ?? before
      const own = isObject(since) ? sumOf(since) : undefined
      if (isObject(since)) models = merged(models, since)
      // Stopped in the middle of a message, it may name a price only.
      const isTold = own !== undefined && !(own === 0 && isAborted(line))
      const isSame = own !== undefined && more !== undefined && Math.abs(own - more) < 1e-9
      const spent = isTold && !isSame ? own : more
      if (spent !== undefined) paid = (paid ?? 0) + spent
      return paid
    },
    facts(line: Record<string, unknown>): Pick<ReportedTotals, 'costUsd' | 'modelUsage'> {
      return { costUsd: paid, modelUsage: Object.keys(models).length > 0 ? models : line['modelUsage'] }
    },
  }
}

function sumOf(models: Record<string, unknown>): number {
  return Object.values(models).reduce<number>((sum, model) => sum + (numberOf(objectOf(model)['costUSD']) ?? 0), 0)
}

/** Counts of a model add up; its limits and its name do not. */
const isCount = /^(?!max).*(?:Tokens|Requests|USD)$/u

function merged(models: Record<string, Record<string, unknown>>, more: Record<string, unknown>) {
  const sum = new Map(Object.entries(models))
  for (const [name, value] of Object.entries(more)) {
    const known = sum.get(name) ?? {}
    const added = Object.entries(objectOf(value)).map(([key, each]) => {
      const isAdded = isCount.test(key) && typeof each === 'number'
      return [key, isAdded ? each + (numberOf(ownValue(known, key)) ?? 0) : each]
    })
    sum.set(name, { ...known, ...(Object.fromEntries(added) as object) })
  }
  return Object.fromEntries(sum)
}

/** Its reported tokens, if any: a message that was stopped in the middle counts only in the price. */
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
function costOf(line: Record<string, unknown>): number | undefined {
  return numberOf(line['total_cost_usd']) ?? numberOf(line['cost_usd'])
}

function errorOf(line: Record<string, unknown>, who: string): ErrorValue | undefined {
  const subtype = textOf(line['subtype']) ?? ''
  const isError = line['is_error'] ?? subtype.startsWith('error')
  if (isError !== true) return undefined
  if (isAborted(line)) return { code: 'interrupted', message: `${who} was interrupted.` }
  const errors = Array.isArray(line['errors']) ? line['errors'].filter((each) => typeof each === 'string') : []
  const said = errors.join('; ') || textOf(line['result']) || textOf(objectOf(line['error'])['message'])
  return { code: 'cli-failed', message: said === undefined || said === '' ? `${who} failed: ${subtype}.` : said }
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

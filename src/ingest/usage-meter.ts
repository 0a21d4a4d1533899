/**
 * The usage of a CLI agent while it works. The totals of a run are the sum of its `usage` parts, so each part has only new usage: the
 * reports of one message add up over its time, and the report at the end has the total. The last part corrects
 * the errors of the reports on the way, so its counts may be negative.
 */
import { omitUndefined } from '../part/omit-undefined.ts'
import type { UsagePart } from '../part/part.ts'
import { addUsage, toUsage, type Usage } from '../part/usage.ts'
import type { FinishUsage } from './outcome.ts'

export interface Tokens {
  /** All input tokens: cached ones, and those that were written to a cache, are among them. */
  input?: number | undefined
  cacheRead?: number | undefined
  cacheWrite?: number | undefined
  /** All output tokens: those of reasoning are among them. */
  output?: number | undefined
  reasoning?: number | undefined
  /** The report as it came. */
  raw?: Record<string, unknown> | undefined
}

export interface UsageMeter {
  /** The usage so far of one message, by its id: replaces earlier reports of it. */
  message(id: string, model: string, tokens: Tokens): void
  /**
   * The total, and its price if known: zeros are a report as well. `ofTurn`: the tokens are those since the last time,
   * the price is always that of the whole.
   */
  settle(model: string, tokens: Tokens, cost: number | undefined, ofTurn?: boolean): void
  /** The part of it that one model has used, whose price is not known. */
  share(model: string, tokens: Tokens): void
  /** Without a report at the end, the price is unknown: says so, if there was any usage. */
  giveUp(model: string): void
  /** All usage reported so far. */
  total(): FinishUsage
}

export function toFinishUsage({ input, cacheRead, cacheWrite, output, reasoning, raw }: Tokens): FinishUsage {
  const noCache = input === undefined ? undefined : Math.max(0, input - (cacheRead ?? 0) - (cacheWrite ?? 0))
  const text = output === undefined || reasoning === undefined ? undefined : Math.max(0, output - reasoning)
  return {
    inputTokens: { total: input, noCache, cacheRead, cacheWrite },
    outputTokens: { total: output, text, reasoning },
    ...omitUndefined({ raw: raw as FinishUsage['raw'] }),
  } as FinishUsage
}

const counts = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
  'cacheWriteInputTokens',
] as const

const none: Usage = { source: 'reported' }
const zero: Usage = { source: 'reported', inputTokens: 0, outputTokens: 0, totalTokens: 0 }
/** Messages whose last report is remembered: they do not come back later. */
const mostMessages = 100

/** `namesPrice`: the CLI names its price at its end, so that until then nothing is paid. */
export function createUsageMeter(emit: (part: UsagePart) => void, namesPrice = true): UsageMeter {
  const messages = new Map<string, Usage>()
  let sum: Usage | undefined
  let paid = 0
  /** Usage was said whose price is still to come. */
  let isOwed = false
  /** The usage up to the last report at an end, and whether more was reported since. */
  let settled: Usage | undefined
  let hasSaid = false

  function add(model: string, usage: Usage, cost: number | undefined): void {
    sum = addUsage(sum, usage)
    hasSaid = true
    emit({ type: 'usage', model, usage, ...omitUndefined({ cost }) } as UsagePart)
  }

  return {
    message(id, model, tokens) {
      const usage = toUsage(toFinishUsage(tokens))
      if (usage === undefined) return
      const change = difference(usage, messages.get(id) ?? none)
      messages.delete(id)
      messages.set(id, usage)
      if (messages.size > mostMessages) {
        for (const first of messages.keys()) {
          messages.delete(first)
          break
        }
      }
      // The price comes with the report at the end: until then, nothing is added to it.
      if (change === undefined) return
      isOwed = namesPrice
      add(model, change, namesPrice ? 0 : undefined)
    },
    settle(model, tokens, cost, ofTurn = false) {
      const reported = toUsage(toFinishUsage(tokens))
      const usage = reported && ofTurn ? addUsage(settled, reported) : reported
      const change = usage && difference(usage, sum ?? none)
      // Nothing used is nothing to pay.
      const isFree = reported !== undefined && !isOwed && !reported.inputTokens && !reported.outputTokens
      const isFirst = reported !== undefined && !hasSaid
      if (change !== undefined || isOwed || isFirst || (cost !== undefined && cost !== paid)) {
        const owed = cost === undefined ? (isFree ? 0 : undefined) : cost - paid
        add(model, change ?? (isFirst ? zero : none), owed)
      }
      settled = sum
      hasSaid = false
      isOwed = false
      paid = cost ?? paid
    },
    share(model, tokens) {
      const usage = toUsage(toFinishUsage(tokens))
      if (usage !== undefined) add(model, usage, undefined)
    },
    giveUp(model) {
      if (isOwed) add(model, none, undefined)
      isOwed = false
    },
    total() {
      const { inputTokens, cachedInputTokens, cacheWriteInputTokens, outputTokens, reasoningTokens } = sum ?? none
      return toFinishUsage({
        input: inputTokens,
        cacheRead: cachedInputTokens,
        cacheWrite: cacheWriteInputTokens,
        output: outputTokens,
        reasoning: reasoningTokens,
      })
    },
  }
}

/** The difference between `before` and `now`; undefined if they are the same. */
function difference(now: Usage, before: Usage): Usage | undefined {
  const change: Usage = { source: now.source }
  let isNew = false
  for (const key of counts) {
    if (now[key] === undefined && before[key] === undefined) continue
    const count = (now[key] ?? 0) - (before[key] ?? 0)
    change[key] = count
    if (count !== 0) isNew = true
  }
  return isNew ? change : undefined
}

/** One model call as a step: prompt, parts as they come (`model-feed.ts`), usage, end; its retries and its fallbacks. */
import { MillraceError, toErrorValue } from '../part/error.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import { outcomeText } from '../part/open-items.ts'
import { pause } from '../part/pause.ts'
import { joinPath, parentPath } from '../part/path.ts'
import type { Turn } from '../part/turns.ts'
import type { Usage } from '../part/usage.ts'
import { toProvider } from './call-ids.ts'
import { costOf } from './pricing.ts'
import { createFeed } from './model-feed.ts'
import type { Verdict } from './judge-object.ts'
import { createStallWatch } from './stall-watch.ts'
import { isRetryable, streamModel, type ModelCall } from './model.ts'
import type { LanguageModel } from './ports.ts'
import { inStep, type Scope } from './scope.ts'
import { stricter } from './time-limits.ts'
import { estimateTurn, missingUsage } from './unfinished.ts'

export interface ModelStep {
  /** The step whose loop this call belongs to. */
  root: string
  stage: string
  /** In turn: the next one is asked when the one before fails before its first content. */
  models: { name: string; model: LanguageModel }[]
  call: Omit<ModelCall, 'signal'>
  /** What the log does not hold yet of the messages (all of them at first). */
  newMessages: Message[]
  tools: ToolSpec[]
  retries: number
  onChunk?: string
  /** Sees the text of the answer as it is written. */
  onText?: (delta: string) => void
  /** Judges a call that has said everything. Without it anything fits. */
  verdict?: (turn: Turn) => Verdict | undefined
}

/** Runs one call; resolves when it has finished and throws when it failed after its retries. */
export async function runModelCall(scope: Scope, step: ModelStep): Promise<void> {
  const turns = scope.state.turns(step.root)
  const path = joinPath(step.root, turns.children + 1)
  // A second attempt, after a crash, is the same step.
  if (!scope.state.has(path)) for (const limit of scope.limits) limit.checkStep()
  for (const { name } of step.models) refuseUnpriced(scope, name)
  await inStep(scope, path, { stepType: 'model-call' }, async () => {
    const { stage, newMessages: messages, tools } = step
    let model = step.models[0]!.name
    const { system } = step.call
    scope.emit(path, {
      type: 'prompt',
      stage,
      model,
      ...(system === undefined ? undefined : { system }),
      messages,
      ...(tools.length === 0 ? undefined : { tools }),
    })
    let usage: Usage | undefined
    try {
      usage = await streamWithFallbacks(scope, path, step, (name) => (model = name))
    } finally {
      scope.speaking.delete(path)
      // Also a call that was stopped or failed has cost something.
      usage ??= estimateTurn(
        turns,
        turns.list.findLast((turn) => turn.path === path)!,
      )
      const cost = costOf(usage, scope.registry.pricing?.get(model))
      scope.emit(path, { type: 'usage', model, usage, ...(cost === undefined ? undefined : { cost }) })
    }
    const turn = turns.list.findLast((each) => each.path === path)
    const finishReason = turn?.finish?.reason.unified
    if (turn !== undefined) tellVerdict(scope, turn, step.verdict)
    return { value: undefined, usage, ...(finishReason === undefined ? undefined : { finishReason }) }
  })
}

/** What costs an unknown amount cannot be kept within a budget of money: it is not free. */
function refuseUnpriced({ limits, registry }: Scope, model: string): void {
  if (!limits.some(({ counts }) => counts) || registry.pricing?.has(model)) return
  const cure = 'Add it to "pricing" in the config, or give the budget in tokens.'
  throw new MillraceError('unknown-price', `There is a budget in USD, and no price of the model "${model}". ${cure}`)
}

/**
 * Brings a call that the process before left open to where it can be gone on from: one that had said everything is
 * closed, one that had not is void, because half an answer cannot be gone on from.
 */
export async function settleModelCall(
  scope: Scope,
  root: string,
  turn: Turn,
  verdict: ModelStep['verdict'],
): Promise<void> {
  const { path, finish } = turn
  const missing = missingUsage(scope.state.turns(root), turn)
  if (missing !== undefined) scope.emit(path, missing)
  const said = finish !== undefined && finish.reason.unified !== 'error' && finish.reason.unified !== 'interrupted'
  if (!said) {
    scope.emit(path, { type: 'step-reset', attempt: scope.state.open.steps.get(path)?.attempt ?? 1 })
    return
  }
  await inStep(scope, path, { stepType: 'model-call' }, async () => {
    tellVerdict(scope, turn, verdict)
    return { value: undefined, usage: turn.usage!, finishReason: finish.reason.unified }
  })
}

/** Told before the call is closed: whoever holds its text back knows then what becomes of it. */
function tellVerdict(scope: Scope, turn: Turn, verdict: ModelStep['verdict']): void {
  const found = turn.rejected === undefined ? verdict?.(turn) : undefined
  if (found === undefined) return
  if (!found.again) throw found.error
  const attempt =
    scope.state.turns(parentPath(turn.path)).list.filter(({ rejected }) => rejected !== undefined).length + 2
  scope.emit(turn.path, { type: 'retry', attempt, delay: 0, error: toErrorValue(found.error) })
}

async function streamWithFallbacks(
  scope: Scope,
  path: string,
  step: ModelStep,
  asking: (name: string) => void,
): Promise<Usage | undefined> {
  for (const [i, { name, model }] of step.models.entries()) {
    asking(name)
    const failed = { hasContent: false }
    try {
      return await streamWithRetries(scope, path, { ...step, model, name, failed })
    } catch (error) {
      const next = step.models[i + 1]
      if (next === undefined || failed.hasContent || scope.signal.aborted) throw error
      scope.emit(path, {
        type: 'retry',
        attempt: 1,
        model: next.name,
        delay: 0,
        error: toErrorValue(error, 'model-failed'),
      })
    }
  }
  return undefined
}

interface Attempts extends ModelStep {
  name: string
  model: LanguageModel
  /** Told when the call fails behind its first content. */
  failed: { hasContent: boolean }
}

async function streamWithRetries(scope: Scope, path: string, step: Attempts): Promise<Usage | undefined> {
  for (let attempt = 1; ; attempt++) {
    const { name: model, call, onChunk, onText } = step
    const { defaultTimeouts: defaults, signal: outer } = scope
    const timeouts = stricter(scope.timeouts, scope.callerTimeouts)
    const watch = createStallWatch({ timeouts, defaults, reasons: reasons(call), signal: outer })
    const feed = createFeed(scope, path, {
      model,
      messages: call.messages,
      ...(watch === undefined ? undefined : { silence: watch }),
      ...(onChunk === undefined ? undefined : { onChunk }),
      ...(onText === undefined ? undefined : { onText }),
    })
    try {
      const signal = watch?.signal ?? outer
      const messages = toProvider(call.messages, scope.state.turns(step.root))
      await streamModel(step.model, { ...call, messages, signal }, feed.part, scope.ready)
      if (feed.error !== undefined) throw feed.error
      return feed.usage
    } catch (error) {
      step.failed.hasContent = feed.hasContent
      if (watch?.expired !== undefined && !outer.aborted) throw watch.expired
      // A provider's own error part tells more than the broken stream behind it.
      const cause = feed.error ?? error
      if (scope.signal.aborted || feed.hasContent || attempt > step.retries || !isRetryable(cause)) throw cause
      const value = toErrorValue(cause, 'model-failed')
      const delay = value.retryAfter === undefined ? 250 * 2 ** (attempt - 1) : value.retryAfter * 1000
      // A provider that wants a long rest is told to the client at once rather than waited for.
      if (delay > 10_000) throw cause
      scope.emit(path, { type: 'retry', attempt: attempt + 1, delay, error: value })
      watch?.release()
      await pause(delay, scope.signal)
      scope.signal.throwIfAborted()
    } finally {
      watch?.release()
    }
  }
}

const unreasoned: ReadonlySet<string | undefined> = new Set([undefined, 'provider-default', 'none', 'minimal'])

function reasons({ reasoning }: Pick<ModelCall, 'reasoning'>): boolean {
  return !unreasoned.has(reasoning)
}

/**
 * A tool that the provider ran itself and whose result never came has an outcome all the same. Asked for when the loop
 * ends: a provider may bring a result with its next answer, after those of our own tools.
 */
export function endProviderCalls(scope: Scope, root: string): void {
  for (const { step, toolCallId, toolName, providerExecuted } of scope.state.open.calls.values()) {
    if (parentPath(step) !== root || providerExecuted !== true) continue
    const outcome = 'unavailable'
    scope.emit(step, {
      type: 'tool-result',
      toolCallId,
      toolName,
      result: outcomeText[outcome],
      isError: true,
      outcome,
    })
  }
}

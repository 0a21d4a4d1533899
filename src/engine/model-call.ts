/** Runs one model call as a step: emits the prompt, the parts (`model-feed.ts`), usage and end; handles retries and fallbacks. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError, toErrorValue } from '../part/error.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import type { Prompt } from '../part/part.ts'
import { lostResult } from '../fold/open-items.ts'
import { pause } from '../async/pause.ts'
import { joinPath, parentPath } from '../part/path.ts'
import { type ModelReply, hasState, withoutOthersState } from '../fold/reply-messages.ts'
import type { Usage } from '../part/usage.ts'
import { toProvider } from '../fold/call-ids.ts'
import { createFeed, createStallWatch } from './model-feed.ts'
import type { FullWindow } from './full-window.ts'
import type { Verdict } from './judge-object.ts'
import { overflowIn, windowFilled } from '../models/context-overflow.ts'
import { hasFiles } from '../models/files.ts'
import { isRetryable, streamModel, type ModelCall } from '../models/model.ts'
import type { NamedModel } from '../models/model-error.ts'
import type { LanguageModel, ModelResolver, Pricing } from '../models/language-model.ts'
import { inStep, type Scope, traceparentOf } from './scope.ts'
import { stricter } from './limits.ts'
import { estimateReply, missingUsage, missingUsages } from './state.ts'

export interface ModelStep {
  /** The step whose loop this call belongs to. */
  root: string
  stage: string
  /** Tried in order: the next one is called if the previous one fails before its first content. */
  models: { name: string; model: LanguageModel }[]
  call: Omit<ModelCall, 'signal'>
  /** The messages that are not in the log yet: all of them in the first call. */
  newMessages: Message[]
  /** The handles of results in the log that this call is the first to be told shortened. */
  shortened: readonly string[]
  /** Makes room if the provider refuses the prompt because it is too long. */
  room?: FullWindow
  tools: ToolSpec[]
  retries: number
  onChunk?: string
  /** Called with each piece of the answer's text. */
  onText?: (delta: string) => void
  /** Judges a complete call. Without it every answer is valid. */
  verdict?: (reply: ModelReply) => Verdict | undefined
}

/**
 * Runs one call. Rejects when it has failed after its retries; throws if a limit is reached first. Not `async`: each pending frame costs memory per
 * open stream.
 */
export function runModelCall(scope: Scope, step: ModelStep): Promise<void> {
  const loop = scope.state.loopAt(step.root)
  const path = joinPath(step.root, loop.children + 1)
  // A second attempt, after a crash, is the same step.
  if (!scope.state.has(path)) for (const limit of scope.limits) limit.checkStep()
  for (const { name } of step.models) refuseUnpriced(scope, name)
  return inStep(scope, path, { stepType: 'model-call', kind: 'model-call' }, async () => {
    const { stage, newMessages: messages, shortened, tools } = step
    let model = step.models[0]!.name
    const { system } = step.call
    scope.emit(path, {
      type: 'prompt',
      stage,
      model,
      ...omitUndefined({ system }),
      messages,
      ...(shortened.length === 0 ? undefined : { shortened: [...shortened] }),
      ...(tools.length === 0 ? undefined : { tools }),
      ...settingsOf(step.call),
    })
    let usage: Usage | undefined
    try {
      usage = await streamWithFallbacks(scope, path, step, (name) => (model = name))
    } finally {
      scope.speaking.delete(path)
      // A stopped or failed call has a cost, too.
      usage ??= estimateReply(
        loop,
        loop.list.findLast((reply) => reply.path === path)!,
      )
      const cost = costOf(usage, scope.registry.pricing?.get(model))
      scope.emit(path, { type: 'usage', model, usage, ...(cost === undefined ? undefined : { cost }) })
    }
    const reply = loop.list.findLast((each) => each.path === path)
    const finishReason = reply?.finish?.reason.unified
    if (reply !== undefined) emitVerdict(scope, reply, step.verdict)
    return { value: undefined, usage, ...(finishReason === undefined ? undefined : { finishReason }) }
  })
}

/** Those of the call that the log keeps: none of the rest of the prompt, and nothing that may be a secret. */
function settingsOf(call: ModelStep['call']): Pick<Prompt, 'settings'> {
  const { temperature, topP, maxOutputTokens, stopSequences, seed, reasoning, toolChoice } = call
  const { presencePenalty, frequencyPenalty } = call
  const sampling = { temperature, topP, maxOutputTokens, stopSequences, seed, presencePenalty, frequencyPenalty }
  const settings = omitUndefined({ ...sampling, reasoning, toolChoice })
  return Object.keys(settings).length === 0 ? {} : { settings }
}

/** A model with an unknown price cannot be kept within a budget of money. */
export function refuseUnpriced({ limits, registry }: Pick<Scope, 'limits' | 'registry'>, model: string): void {
  if (!limits.some(({ counts }) => counts) || registry.pricing?.has(model)) return
  const cure = 'Add its price to "pricing" in the config, or set the budget or the quota in tokens.'
  throw new MillraceError(
    'unknown-price',
    `There is a budget or a quota in USD, but the model "${model}" has no price. ${cure}`,
  )
}

/**
 * Settles a call that an earlier process left open. A complete call is closed. Any other is reset and made again, because half an answer cannot be
 * continued.
 */
export async function settleModelCall(
  scope: Scope,
  root: string,
  reply: ModelReply,
  verdict: ModelStep['verdict'],
): Promise<void> {
  const { path, finish } = reply
  const missing = missingUsage(scope.state.loopAt(root), reply)
  if (missing !== undefined) scope.emit(path, missing)
  // Of a summary that was being made for it.
  for (const { step, part } of missingUsages(scope.state, path)) scope.emit(step, part)
  const said = finish !== undefined && finish.reason.unified !== 'error' && finish.reason.unified !== 'interrupted'
  if (!said) {
    scope.emit(path, { type: 'step-reset', attempt: scope.state.open.steps.get(path)?.attempt ?? 1 })
    return
  }
  await inStep(scope, path, { stepType: 'model-call', kind: 'model-call' }, async () => {
    emitVerdict(scope, reply, verdict)
    return { value: undefined, usage: reply.usage!, finishReason: finish.reason.unified }
  })
}

/** Emits the verdict before the call is closed, for readers that hold its text back until then. */
function emitVerdict(scope: Scope, reply: ModelReply, verdict: ModelStep['verdict']): void {
  const found = reply.rejected === undefined ? verdict?.(reply) : undefined
  if (found === undefined) return
  if (!found.again) throw found.error
  const attempt =
    scope.state.loopAt(parentPath(reply.path)).list.filter(({ rejected }) => rejected !== undefined).length + 2
  scope.emit(reply.path, { type: 'retry', attempt, delay: 0, error: toErrorValue(found.error) })
}

function streamWithFallbacks(
  scope: Scope,
  path: string,
  step: ModelStep,
  asking: (name: string) => void,
  at = 0,
): Promise<Usage | undefined> {
  const { name, model } = step.models[at]!
  asking(name)
  const failed = { hasContent: false }
  const streamed = streamWithRetries(scope, path, { ...step, model, name, failed })
  const next = step.models[at + 1]
  if (next === undefined) return streamed
  return streamed.catch((error: unknown) => {
    if (failed.hasContent || scope.signal.aborted) throw error
    noteFailure(scope.registry.models, name)
    const value = toErrorValue(error, 'model-failed')
    scope.emit(path, { type: 'retry', attempt: 1, model: next.name, delay: 0, error: value })
    return streamWithFallbacks(scope, path, step, asking, at + 1)
  })
}

interface Attempts extends ModelStep {
  name: string
  model: LanguageModel
  /** `hasContent` is set if the call fails after its first content. */
  failed: { hasContent: boolean }
}

async function streamWithRetries(scope: Scope, path: string, step: Attempts): Promise<Usage | undefined> {
  let isBare = false
  let bareFiles = false
  let isShorter = false
  let { call } = step
  for (let attempt = 1; ; attempt++) {
    const { name: model, onChunk, onText, room } = step
    const { defaultTimeouts: defaults, signal: outer } = scope
    const timeouts = stricter(scope.timeouts, scope.callerTimeouts)
    const { isLocal } = step.model as NamedModel
    const watch = createStallWatch({ timeouts, defaults, reasons: reasons(call), isLocal, signal: outer })
    const feed = createFeed(scope, path, { model, messages: call.messages, silence: watch, onChunk, onText })
    try {
      const signal = watch?.signal ?? outer
      const sayable = withoutOthersState(call.messages, (maker) => !isBare && isSame(scope, maker, model))
      const messages = toProvider(sayable, scope.state.loopAt(step.root))
      const headers = headersOf(traceparentOf(scope, path), call.headers)
      const onAlive = watch && (() => watch.alive())
      await streamModel(step.model, { ...call, ...headers, messages, signal, bareFiles }, feed.part, {
        ready: scope.ready,
        onAlive,
        written: model,
      })
      if (feed.error !== undefined) throw feed.error
      feed.normaliser.end()
      if (room !== undefined && feed.reason === windowFilled && !feed.normaliser.hasContent)
        throw new MillraceError('model-incomplete', `${model} ended its answer with "${windowFilled}".`)
      if (feed.isEmpty()) {
        const said = `${model} ended its answer without saying or calling anything.`
        const isRepeated = attempt <= step.retries && !feed.normaliser.hasContent
        if (isRepeated) throw new MillraceError('model-incomplete', said)
        scope.emit(path, { type: 'warning', code: 'empty-answer', message: said })
      }
      return feed.usage
    } catch (error) {
      const { hasContent } = feed.normaliser
      step.failed.hasContent = hasContent
      if (watch?.expired !== undefined && !outer.aborted) throw watch.expired
      // A provider's error part is more specific than the broken stream after it.
      const cause = feed.error ?? error
      const isRefusal = !isBare && isAboutState(cause) && call.messages.some(hasState)
      if (scope.signal.aborted || hasContent) throw cause
      const overflow = room && overflowIn(cause)
      if (room !== undefined && overflow !== undefined && !(isAboutFiles(cause) && hasFiles(call.messages))) {
        watch?.release()
        if (isShorter) throw room.tooLong(cause)
        isShorter = true
        call = { ...call, messages: await room.refused(path, model, overflow) }
        scope.emit(path, { type: 'retry', attempt: attempt + 1, delay: 0, error: toErrorValue(cause, 'model-failed') })
        continue
      }
      if (isAboutFiles(cause) && hasFiles(call.messages)) {
        // Files of this turn are the client's mistake. Those of earlier turns must not end the conversation.
        if (bareFiles || !hasFiles(call.messages, 'old'))
          throw new MillraceError('bad-input', cause.message, { status: 400, cause })
        bareFiles = true
        scope.emit(path, { type: 'retry', attempt: attempt + 1, delay: 0, error: toErrorValue(cause, 'model-failed') })
        continue
      }
      if (!isRefusal && (attempt > step.retries || !isRetryable(cause))) throw cause
      const value = toErrorValue(cause, 'model-failed')
      if (isRefusal) {
        // State from elsewhere in the thread is dropped, and the call is retried once.
        isBare = true
        scope.emit(path, { type: 'retry', attempt: attempt + 1, delay: 0, error: value })
        continue
      }
      const delay = value.retryAfter === undefined ? 250 * 2 ** (attempt - 1) : value.retryAfter * 1000
      // If the provider asks for a long wait, the client gets the error at once.
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

/** Whether a recorded message was made by this model: names may differ (`gpt-5`, `openai:gpt-5`). Messages without a model count as its own. */
function isSame({ registry }: Scope, maker: string | undefined, model: string): boolean {
  if (maker === undefined || maker === model) return true
  const nameOf = (name: string) => {
    try {
      const { provider, modelId } = registry.models.resolve(name)
      return `${provider}:${modelId}`
    } catch {
      return name
    }
  }
  return nameOf(maker) === nameOf(model)
}

const fileWords =
  /\b(?:images?|image_url|files?|media|mime|documents?|pdfs?|audio|videos?|vision|multi-?modal|base64|attachments?)\b/iu
const refusingWords = /not support|unsupported|invalid|cannot|could not|unable|fail/iu

/** Whether a model server refuses a file. Some answer with a 500. */
function isAboutFiles(error: unknown): error is MillraceError {
  if (!(error instanceof MillraceError) || !fileWords.test(error.message)) return false
  const { code, status = 400 } = error
  if (code === 'model-refused') return [400, 413, 415, 422].includes(status)
  return (code === 'model-unavailable' || code === 'model-failed') && refusingWords.test(error.message)
}

/** A provider refuses signatures and reasoning that it cannot check. */
function isAboutState(error: unknown): boolean {
  return (
    error instanceof MillraceError &&
    error.status === 400 &&
    /signature|thinking|thought|reasoning/iu.test(error.message)
  )
}

function headersOf(traceparent: string | undefined, headers: ModelCall['headers']): Pick<ModelCall, 'headers'> {
  return traceparent === undefined ? {} : { headers: { traceparent, ...headers } }
}

const unreasoned: ReadonlySet<string | undefined> = new Set([undefined, 'provider-default', 'none', 'minimal'])

function reasons({ reasoning }: Pick<ModelCall, 'reasoning'>): boolean {
  return !unreasoned.has(reasoning)
}

/**
 * Marks provider-executed tool calls without a result as `unavailable`. Call it when the loop ends: a provider may send a result with its next
 * answer, after the results of our own tools.
 */
export function endProviderCalls(scope: Scope, root: string): void {
  for (const call of scope.state.open.calls.values()) {
    if (parentPath(call.step) !== root || call.providerExecuted !== true) continue
    scope.emit(call.step, lostResult(call, 'unavailable'))
  }
}

/* The order in which a loop's models are called: the last successful one first, recently failed ones last. */

/** ms during which a failed model is not called first. */
const cooldown = 60_000
/** Maximum number of names, which come from agent files and requests. */
const most = 1000

/** The time of each model's last failure, in this process. */
const failures = new WeakMap<ModelResolver, Map<string, number>>()

function noteFailure(models: ModelResolver, name: string): void {
  const known = failures.get(models) ?? new Map<string, number>()
  failures.set(models, known)
  known.delete(name)
  known.set(name, performance.now())
  if (known.size > most) known.delete(known.keys().next().value!)
}

/** `answered`: the model of the loop's last answer. The models after it come next, then the ones before it. */
export function inOrder<T extends { name: string }>(
  models: ModelResolver,
  all: T[],
  answered: string | undefined,
): T[] {
  if (all.length < 2) return all
  const from = all.findIndex(({ name }) => name === answered)
  if (from >= 0) return [...all.slice(from), ...all.slice(0, from)]
  const known = failures.get(models)
  const isTired = ({ name }: T) => performance.now() - (known?.get(name) ?? -Infinity) < cooldown
  return [...all.filter((each) => !isTired(each)), ...all.filter(isTired)]
}

/**
 * In USD. Undefined if the price is unknown, except that zero tokens (a recording) cost 0. Cached, cache-write and reasoning tokens have the price
 * of input or output unless they have their own. Counts may be negative: a CLI agent corrects its sum.
 */
export function costOf(usage: Usage, pricing: Pricing | undefined): number | undefined {
  if (usage.inputTokens === 0 && usage.outputTokens === 0) return 0
  if (pricing === undefined) return undefined
  const { inputTokens = 0, outputTokens = 0 } = usage
  const { input, output, cachedInput = input, cacheWriteInput = input, reasoning = output } = pricing
  // Some providers count cached tokens apart from input: the cost must not become negative.
  const cached = within(usage.cachedInputTokens, inputTokens)
  const written = within(usage.cacheWriteInputTokens, inputTokens - cached)
  const reasoned = within(usage.reasoningTokens, outputTokens)
  const plain = (inputTokens - cached - written) * input + (outputTokens - reasoned) * output
  return (plain + cached * cachedInput + written * cacheWriteInput + reasoned * reasoning) / 1e6
}

function within(part = 0, whole: number): number {
  return whole < 0 ? Math.max(part, whole) : Math.min(Math.max(part, 0), whole)
}

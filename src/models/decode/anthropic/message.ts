/** The beginning and the end of a message: usage, stop reason, metadata. */
import {
  InvalidResponseDataError,
  type JSONObject,
  type JSONValue,
  type LanguageModelV4FinishReason,
  type LanguageModelV4Usage,
} from '@ai-sdk/provider'
import { callerOf, type AnthropicState } from './state.ts'
import { emitSource, textEnd } from './citations.ts'
import type { EventOf, Usage } from './event-schema.ts'

export interface AnthropicMessage {
  /** False: a second message began inside this one. Nothing more is read. */
  start(event: EventOf<'message_start'>): boolean
  delta(event: EventOf<'message_delta'>): void
  stop(): void
}

type Delta = EventOf<'message_delta'>['delta']

export function createMessage(state: AnthropicState): AnthropicMessage {
  return new Message(state)
}

/** A class, because its functions would cost each open answer more than what it knows. */
class Message implements AnthropicMessage {
  readonly #state: AnthropicState
  #open: { id: string | null | undefined } | undefined = undefined
  #finishReason: LanguageModelV4FinishReason = { unified: 'other', raw: undefined }
  readonly #counts: Usage = {
    input_tokens: 0,
    output_tokens: 0,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    iterations: null,
  }
  #rawUsage: JSONObject | undefined = undefined
  #stopSequence: string | null = null
  #container: JSONObject | null = null
  #contextManagement: JSONObject | null = null
  #serviceTier: string | null = null
  // Only in the metadata if the provider sent them.
  #stopDetails: JSONObject | undefined = undefined
  #inputTransformations: JSONValue | null | undefined = undefined
  #safeguardResults: JSONValue | null | undefined = undefined

  constructor(state: AnthropicState) {
    this.#state = state
  }

  #end(reason: string | null | undefined): void {
    this.#finishReason = { unified: unifiedReason(reason, this.#state.calledJson), raw: reason ?? undefined }
  }

  #metadata(): JSONObject {
    return {
      usage: this.#rawUsage ?? null,
      stopSequence: this.#stopSequence,
      ...(this.#serviceTier === null ? undefined : { serviceTier: this.#serviceTier }),
      ...(this.#stopDetails && { stopDetails: this.#stopDetails }),
      ...(this.#inputTransformations && { inputTransformations: this.#inputTransformations }),
      ...(this.#safeguardResults && { safeguardResults: this.#safeguardResults }),
      iterations: this.#counts.iterations?.map(iterationOf) ?? null,
      container: this.#container,
      contextManagement: this.#contextManagement,
    }
  }

  start(event: EventOf<'message_start'>): boolean {
    const state = this.#state
    const { emit } = state
    const { message } = event
    if (this.#open !== undefined) {
      if (this.#open.id === message.id) return true
      const error = new InvalidResponseDataError({
        data: event,
        message:
          `Received message_start for message ${JSON.stringify(message.id)} ` +
          `while message ${JSON.stringify(this.#open.id)} is still open.`,
      })
      emit({ type: 'error', error })
      return false
    }
    const { id, model, usage } = message
    this.#open = { id }
    this.#serviceTier = usage.service_tier ?? message.service_tier ?? null
    state.heldByIndex.clear()
    const counts = this.#counts
    counts.input_tokens = usage.input_tokens
    counts.cache_read_input_tokens = usage.cache_read_input_tokens ?? 0
    counts.cache_creation_input_tokens = usage.cache_creation_input_tokens ?? 0
    this.#rawUsage = { ...usage } as JSONObject
    this.#inputTransformations = message.input_transformations ?? this.#inputTransformations
    if (message.container) this.#container = { ...containerOf(message.container), skills: null }
    if (typeof message.stop_reason === 'string') this.#end(message.stop_reason)
    emit({ type: 'response-metadata', id: id ?? undefined, modelId: model ?? undefined })
    const started = { id: id ?? null, model: model ?? null, usage: this.#rawUsage }
    emit({ type: 'custom', kind: 'anthropic.message_start', providerMetadata: { anthropic: started } })
    for (const call of message.content ?? []) emitWhole(state, call)
    return true
  }

  delta(event: EventOf<'message_delta'>): void {
    const { delta, usage, input_transformations: transformations, context_management: management } = event
    const counts = this.#counts
    counts.input_tokens = usage.input_tokens ?? counts.input_tokens!
    counts.output_tokens = usage.output_tokens
    counts.output_tokens_details = usage.output_tokens_details ?? counts.output_tokens_details
    counts.cache_read_input_tokens = usage.cache_read_input_tokens ?? counts.cache_read_input_tokens
    counts.cache_creation_input_tokens = usage.cache_creation_input_tokens ?? counts.cache_creation_input_tokens
    counts.iterations = usage.iterations ?? counts.iterations
    this.#end(delta.stop_reason)
    this.#stopSequence = delta.stop_sequence ?? null
    this.#stopDetails = delta.stop_details ? stopDetailsOf(delta.stop_details) : undefined
    this.#container = delta.container ? { ...containerOf(delta.container), skills: skillsOf(delta.container) } : null
    if (management) this.#contextManagement = { appliedEdits: management.applied_edits.map(editOf) }
    this.#inputTransformations = transformations ?? this.#inputTransformations
    this.#safeguardResults = (delta.safeguard_results as JSONValue | null | undefined) ?? this.#safeguardResults
    this.#serviceTier = usage.service_tier ?? this.#serviceTier
    this.#rawUsage = { ...this.#rawUsage, ...(usage as JSONObject) }
  }

  stop(): void {
    const state = this.#state
    const { emit } = state
    this.#open = undefined
    const anthropic = this.#metadata()
    if (!state.hasSearchResults) for (const citation of state.citedPages) emitSource(state, citation)
    state.citedPages.length = 0
    const finishReason = this.#finishReason
    // A message that goes on with a tool is not the answer.
    const goesOn = finishReason.raw === 'pause_turn' || finishReason.raw === 'tool_use'
    if (!state.calledJson && !goesOn) {
      for (const { id, text, citations } of state.held) {
        if (text === '') continue
        emit({ type: 'text-start', id })
        emit({ type: 'text-delta', id, delta: text })
        emit(textEnd(state, id, citations))
      }
    }
    state.held.length = 0
    const usage = usageOf(this.#counts, this.#rawUsage)
    emit({ type: 'finish', finishReason, usage, providerMetadata: { anthropic } })
  }
}

type StartedCall = NonNullable<EventOf<'message_start'>['message']['content']>[number]

/** A call that a tool of the provider has made: it comes whole. */
function emitWhole({ emit }: AnthropicState, { id, name: toolName, input: value, caller }: StartedCall): void {
  const input = JSON.stringify(value ?? {})
  emit({ type: 'tool-input-start', id, toolName })
  emit({ type: 'tool-input-delta', id, delta: input })
  emit({ type: 'tool-input-end', id })
  const info = callerOf(caller)
  const providerMetadata = info && { anthropic: { caller: info as unknown as JSONObject } }
  emit({ type: 'tool-call', toolCallId: id, toolName, input, ...(providerMetadata && { providerMetadata }) })
}

function unifiedReason(reason: string | null | undefined, calledJson: boolean): LanguageModelV4FinishReason['unified'] {
  switch (reason) {
    case 'pause_turn':
    case 'end_turn':
    case 'stop_sequence':
      return 'stop'
    case 'refusal':
      return 'content-filter'
    case 'tool_use':
      return calledJson ? 'stop' : 'tool-calls'
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    default:
      return 'other'
  }
}

function containerOf({ expires_at: expiresAt, id }: { expires_at: string; id: string }): JSONObject {
  return { expiresAt, id }
}

function skillsOf({ skills }: NonNullable<Delta['container']>): JSONObject[] | null {
  return skills?.map(({ type, skill_id: skillId, version }) => ({ type, skillId, version })) ?? null
}

function stopDetailsOf(details: NonNullable<Delta['stop_details']>): JSONObject {
  const { type, category, explanation, recommended_model: recommendedModel } = details
  const known = Object.entries({ category, explanation, recommendedModel }).filter(
    ([, text]) => typeof text === 'string',
  )
  return { type, ...Object.fromEntries(known) }
}

type Edit = NonNullable<EventOf<'message_delta'>['context_management']>['applied_edits'][number]

function editOf(edit: Edit): JSONObject {
  const { type } = edit
  if (type === 'compact_20260112') return { type }
  const clearedInputTokens = edit.cleared_input_tokens
  return type === 'clear_tool_uses_20250919'
    ? { type, clearedToolUses: edit.cleared_tool_uses, clearedInputTokens }
    : { type, clearedThinkingTurns: edit.cleared_thinking_turns, clearedInputTokens }
}

type Iteration = NonNullable<Usage['iterations']>[number]

function iterationOf(iteration: Iteration): JSONObject {
  const { type, model, input_tokens: inputTokens, output_tokens: outputTokens } = iteration
  const { cache_creation_input_tokens: written, cache_read_input_tokens: read } = iteration
  return {
    type,
    ...(typeof model === 'string' ? { model } : undefined),
    inputTokens,
    outputTokens,
    ...(written ? { cacheCreationInputTokens: written } : undefined),
    ...(read ? { cacheReadInputTokens: read } : undefined),
  }
}

function usageOf(counts: Usage, raw: JSONObject | undefined): LanguageModelV4Usage {
  const written = counts.cache_creation_input_tokens ?? 0
  const read = counts.cache_read_input_tokens ?? 0
  const reasoning = counts.output_tokens_details?.thinking_tokens ?? undefined
  const { input, output } = totalsOf(counts)
  return {
    inputTokens: { total: input + written + read, noCache: input, cacheRead: read, cacheWrite: written },
    outputTokens: { total: output, text: reasoning === undefined ? undefined : output - reasoning, reasoning },
    raw: raw ?? ({ ...counts } as JSONObject),
  }
}

/** The totals of a message leave out what compaction took. What a fallback answered is in them. */
function totalsOf({ input_tokens: input, output_tokens: output, iterations }: Usage): {
  input: number
  output: number
} {
  const totals = { input: input ?? 0, output }
  if (iterations?.some(({ type }) => type === 'fallback_message')) return totals
  const own = iterations?.filter(({ type }) => type === 'compaction' || type === 'message') ?? []
  if (own.length === 0) return totals
  return own.reduce(
    (sum, each) => ({ input: sum.input + each.input_tokens, output: sum.output + each.output_tokens }),
    { input: 0, output: 0 },
  )
}

/** What the reading of one answer remembers between events. */
import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { LateMap, LateSet } from '../../../fold/late-map.ts'
import type { ChunkOf, Usage } from './chunk-schema.ts'
import type { ResponsesFacts } from './facts.ts'

export type Annotation = ChunkOf<'response.output_text.annotation.added'>['annotation']
type Logprobs = NonNullable<ChunkOf<'response.output_text.delta'>['logprobs']>
type Diagnostics = NonNullable<ChunkOf<'response.completed'>['response']['prompt_cache_diagnostics']>

export interface OpenCall {
  toolName: string
  toolCallId: string
  codeInterpreter?: { containerId: string }
  patch?: { hasDiff: boolean; isEnded: boolean }
  /** Input of a `parallel` call: delivered once it is known whether it stands for several. False for other functions. */
  withheld?: string[] | false
  isAsync?: boolean | null | undefined
}

export interface OpenReasoning {
  encryptedContent: string | null | undefined
  /** By the index of the summary. */
  summaries: Record<string, 'active' | 'can-conclude' | 'concluded'>
}

export interface State extends ResponsesFacts {
  emit(part: LanguageModelV4StreamPart): void
  finishReason: LanguageModelV4FinishReason
  usage: Usage | undefined
  responseId: string | null
  serviceTier: string | undefined
  reasoningContext: string | undefined
  diagnostics: Diagnostics | undefined
  logprobs: Logprobs[]
  hasFunctionCall: boolean
  hasRefusal: boolean
  hasError: boolean
  phase: 'commentary' | 'final_answer' | undefined

  // Plain objects, as in the package: their order is that of numbers, and names of `Object.prototype` behave as there.
  /** By output index. */
  calls: Record<number, OpenCall | undefined>
  /** By item id. */
  reasoning: Record<string, OpenReasoning>
  /** By output index. Servers that only resemble OpenAI's change an item's id between events. */
  itemIds: Record<number, string | undefined>

  annotations: Annotation[]
  /** Sources only where the search itself named none. */
  citedSources: Annotation[]
  hasWebSources: boolean
  hasFileResults: boolean
  retrievedFiles: LateSet<string>
  hostedSearches: string[]
  /** Ids of calls by the id of the approval that they ask for in this answer. */
  askedCalls: LateMap<string, string>
}

export function createState(facts: ResponsesFacts, emit: State['emit']): State {
  return {
    ...facts,
    emit,
    // A clean end without the final event is an interrupted answer.
    finishReason: { unified: 'interrupted', raw: undefined },
    usage: undefined,
    responseId: null,
    serviceTier: undefined,
    reasoningContext: undefined,
    diagnostics: undefined,
    logprobs: [],
    hasFunctionCall: false,
    hasRefusal: false,
    hasError: false,
    phase: undefined,
    calls: {},
    reasoning: {},
    itemIds: {},
    annotations: [],
    citedSources: [],
    hasWebSources: false,
    hasFileResults: false,
    retrievedFiles: new LateSet(),
    hostedSearches: [],
    askedCalls: new LateMap(),
  }
}

export function itemIdOf(
  { itemIds }: State,
  chunk: { item_id: string; output_index?: number | null | undefined },
): string {
  const index = chunk.output_index
  return index === null || index === undefined ? chunk.item_id : (itemIds[index] ?? chunk.item_id)
}

/** A text as it stands inside a JSON string. */
export function escapeJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

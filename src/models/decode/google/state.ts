/** What the reading of one answer remembers between chunks. */
import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { LateSet } from '../../../fold/late-map.ts'
import type { Candidate, Chunk, Grounding, Usage } from './chunk-schema.ts'
import type { JsonBuilder } from './json-builder.ts'

export interface OpenCall {
  toolCallId: string
  toolName: string
  input: JsonBuilder
  providerMetadata: SharedV4ProviderMetadata | undefined
}

export interface State {
  emit(part: LanguageModelV4StreamPart): void
  generateId(): string
  /** Under the keys of the provider's metadata: `google`, or Vertex' two. */
  metadata(payload: Record<string, unknown>): SharedV4ProviderMetadata
  toCustomToolName(name: string): string

  finishReason: LanguageModelV4FinishReason
  usage: Usage | undefined
  hasToolCalls: boolean
  hasResponseId: boolean
  promptFeedback: NonNullable<Chunk['promptFeedback']> | null
  blockReason: string | undefined
  /** The last of each. */
  grounding: Grounding | null
  urlContext: NonNullable<Candidate['urlContextMetadata']> | null
  safetyRatings: NonNullable<Candidate['safetyRatings']> | null
  finishMessage: string | null
  continuationToken: string | null

  textId: string | null
  reasoningId: string | null
  blocks: number
  sources: LateSet<string>
  /** The call that the next result belongs to. */
  codeCallId: string | undefined
  serverCallId: string | undefined
  openCalls: OpenCall[]

  /** Of the requests before, when an answer takes several. */
  earlierUsage: Usage | undefined
  firstPromptTokens: number | null | undefined
}

export type Facts = Pick<State, 'emit' | 'generateId' | 'metadata' | 'toCustomToolName'>

/** A clean end without a reason is an interrupted answer. */
export const interrupted: LanguageModelV4FinishReason = { unified: 'interrupted', raw: undefined }

export function createState(facts: Facts): State {
  return {
    ...facts,
    finishReason: interrupted,
    usage: undefined,
    hasToolCalls: false,
    hasResponseId: false,
    promptFeedback: null,
    blockReason: undefined,
    grounding: null,
    urlContext: null,
    safetyRatings: null,
    finishMessage: null,
    continuationToken: null,
    textId: null,
    reasoningId: null,
    blocks: 0,
    sources: new LateSet(),
    codeCallId: undefined,
    serverCallId: undefined,
    openCalls: [],
    earlierUsage: undefined,
    firstPromptTokens: undefined,
  }
}

export function endText(state: State): void {
  if (state.textId !== null) state.emit({ type: 'text-end', id: state.textId })
  state.textId = null
}

export function endReasoning(state: State): void {
  if (state.reasoningId !== null) state.emit({ type: 'reasoning-end', id: state.reasoningId })
  state.reasoningId = null
}

/** Parts other than texts separate them. */
export function endBlocks(state: State): void {
  endText(state)
  endReasoning(state)
}

export function signatureOf(state: State, signature: string | null | undefined): SharedV4ProviderMetadata | undefined {
  return signature ? state.metadata({ thoughtSignature: signature }) : undefined
}

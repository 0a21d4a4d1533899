/** What an answer of Anthropic's messages has said so far. */
import type { LanguageModelV4ToolCall } from '@ai-sdk/provider'
import { LateMap } from '../../../fold/late-map.ts'
import type { AnthropicFacts, CitedDocument } from './facts.ts'
import type { Caller, ContentBlock } from './block-schema.ts'
import type { Citation } from './event-schema.ts'
import type { Emit } from '../gate.ts'

export interface ToolBlock {
  type: 'tool-call'
  toolCallId: string
  toolName: string
  input: string
  isFirst: boolean
  providerExecuted?: boolean
  /** The provider's own name of the tool. */
  providerTool?: string
  /** Becomes the `type` in the arguments. */
  inputType?: string | undefined
  caller?: CallerInfo | undefined
}

export interface TextBlock {
  type: 'text'
  citations: Citation[]
}

export interface CallerInfo {
  type: NonNullable<Caller>['type']
  toolId: string | undefined
}

/** Text that is the answer only if the tool `json` is not called. */
export interface HeldText {
  id: string
  text: string
  citations: Citation[]
}

export interface AnthropicState {
  emit: Emit
  generateId: () => string
  facts: AnthropicFacts
  blocks: Map<number, ToolBlock | TextBlock | { type: 'reasoning' }>
  /** The type of the block that started last, until a block stops. */
  current: ContentBlock['type'] | undefined
  /** Of the prompt, and those that the provider has fetched. */
  documents: CitedDocument[]
  /** Objects, as in the package: ids may be names of `Object.prototype`, and the parts are the same even then. */
  mcpCalls: Record<string, LanguageModelV4ToolCall>
  searchTools: Record<string, string>
  held: HeldText[]
  heldByIndex: LateMap<number, HeldText>
  calledJson: boolean
  hasSearchResults: boolean
  /** Cited pages: sources only if the search's own results do not come. */
  citedPages: Citation[]
}

export function createState(emit: Emit, generateId: () => string, facts: AnthropicFacts): AnthropicState {
  return {
    emit,
    generateId,
    facts,
    blocks: new Map(),
    current: undefined,
    documents: [...facts.documents],
    mcpCalls: {},
    searchTools: {},
    held: [],
    heldByIndex: new LateMap(),
    calledJson: false,
    hasSearchResults: false,
    citedPages: [],
  }
}

export function callerOf(caller: Caller): CallerInfo | undefined {
  if (caller === undefined) return undefined
  return { type: caller.type, toolId: 'tool_id' in caller ? caller.tool_id : undefined }
}

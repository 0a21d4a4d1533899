/** The blocks of Claude's messages: texts, thinking and calls of tools, in pieces or as a whole. */
import type { ProviderMetadata } from '../../part/model-part.ts'
import type { SourcePart } from '../../part/part.ts'
import { textOf } from '../values.ts'
import type { Calls } from './calls.ts'

export type Say = (part: SourcePart & { providerMetadata?: ProviderMetadata }) => void

export interface ClaudeBlock {
  kind: 'text' | 'reasoning' | 'tool'
  /** The normaliser's id, or that of the call. */
  id: string
  /** Length of its emitted text. */
  length: number
  isOpen: boolean
  signature?: string | undefined
}

export interface Blocks {
  /** Undefined for content that is no block of its own. */
  open(content: Record<string, unknown>, say: Say): ClaudeBlock | undefined
  /** False for a piece that is not one of this block. */
  delta(block: ClaudeBlock | undefined, piece: Record<string, unknown>, say: Say): boolean
  /** The whole content of a block: emits the part that was not emitted before. */
  fill(block: ClaudeBlock, content: Record<string, unknown>, say: Say): void
  /** The end of a call's arguments did not come. Unless they are whole all the same, there is no call; `isLost`: not even then. */
  cut(block: ClaudeBlock, say: Say, isLost?: boolean): void
  /** `thinkingTokens`: an estimate. */
  close(block: ClaudeBlock, say: Say, thinkingTokens?: number): void
}

export function kindOf({ type }: Record<string, unknown>): ClaudeBlock['kind'] {
  if (type === 'text') return 'text'
  return type === 'thinking' || type === 'redacted_thinking' ? 'reasoning' : 'tool'
}

export function createBlocks(calls: Calls): Blocks {
  let ids = 0

  function add(block: ClaudeBlock, text: unknown, say: Say): boolean {
    if (typeof text !== 'string') return false
    if (text === '') return true
    block.length += text.length
    say({ type: block.kind === 'text' ? 'text-delta' : 'reasoning-delta', id: block.id, delta: text })
    return true
  }

  return {
    open(content, say) {
      const kind = kindOf(content)
      if (kind === 'tool') {
        const id = calls.begin(content, say)
        return id === undefined ? undefined : { kind, id, length: 0, isOpen: true }
      }
      const redactedData = textOf(content['data'])
      const block: ClaudeBlock = { kind, id: `${kind}${++ids}`, length: 0, isOpen: true }
      const metadata = redactedData === undefined ? {} : { providerMetadata: { anthropic: { redactedData } } }
      say({ type: `${kind}-start`, id: block.id, ...metadata })
      return block
    },
    delta(block, piece, say) {
      if (block === undefined || !block.isOpen) return false
      switch (piece['type']) {
        case 'text_delta':
          return block.kind === 'text' && add(block, piece['text'], say)
        case 'thinking_delta':
          return block.kind === 'reasoning' && add(block, piece['thinking'], say)
        case 'signature_delta':
          block.signature = (block.signature ?? '') + (textOf(piece['signature']) ?? '')
          return true
        case 'input_json_delta':
          return block.kind === 'tool' && calls.add(block.id, piece['partial_json'], say)
        default:
          return false
      }
    },
    fill(block, content, say) {
      if (block.kind === 'tool') {
        block.isOpen = false
        calls.end(block.id, content['input'], say)
        return
      }
      if (block.length === 0 && block.isOpen) add(block, content[block.kind === 'text' ? 'text' : 'thinking'], say)
      block.signature ??= textOf(content['signature'])
    },
    cut(block, say, isLost = false) {
      block.isOpen = false
      calls.cut(block.id, isLost, say)
    },
    close(block, say, thinkingTokens) {
      if (!block.isOpen) return
      block.isOpen = false
      const { kind, id, signature } = block
      if (kind === 'tool') calls.end(id, undefined, say)
      else if (kind === 'text') say({ type: 'text-end', id })
      else {
        const providerMetadata: ProviderMetadata = {}
        if (thinkingTokens !== undefined) providerMetadata['claude'] = { thinkingTokens }
        if (signature !== undefined) providerMetadata['anthropic'] = { signature }
        const hasNone = thinkingTokens === undefined && signature === undefined
        say({ type: 'reasoning-end', id, ...(hasNone ? undefined : { providerMetadata }) })
      }
    },
  }
}

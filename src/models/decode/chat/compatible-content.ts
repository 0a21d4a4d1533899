/** The content of a chunk: a string, or (Mistral) a list of typed blocks. */
import type { ChatDelta } from './chunk.ts'
import { isObject } from '../read-json.ts'

interface Block {
  type: 'text' | 'reasoning'
  text: string
}

export function blocksOf(content: ChatDelta['content']): Block[] {
  if (!content) return []
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.map(blockOf).filter((block): block is Block => block !== undefined && block.text !== '')
}

function blockOf({ type, text, thinking }: { type: string; [key: string]: unknown }): Block | undefined {
  if (type === 'text' && typeof text === 'string') return { type, text }
  if (type !== 'thinking' || !Array.isArray(thinking)) return undefined
  const texts = thinking.map((chunk: unknown) => (isObject(chunk) && chunk['type'] === 'text' ? chunk['text'] : ''))
  return { type: 'reasoning', text: texts.filter((each) => typeof each === 'string').join('') }
}

import type { CallToolResult } from '@modelcontextprotocol/client'
import { MillraceError } from '../../part/error.ts'

/**
 * Converts a tool result to a value: the structured content if present, the text if all blocks are text (joined by
 * newlines), else the list of content blocks. Throws `tool-failed` with the tool's text for `isError`.
 */
export function toValue({ content, structuredContent, isError }: CallToolResult, failed: string): unknown {
  if (isError === true) throw new MillraceError('tool-failed', textOf(content) || failed)
  if (structuredContent !== undefined) return structuredContent
  return content.every((block) => block.type === 'text') ? textOf(content) : content
}

function textOf(content: CallToolResult['content']): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

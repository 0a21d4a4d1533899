import type { CallToolResult } from '@modelcontextprotocol/client'
import { MillraceError } from '../../part/error.ts'

/**
 * What a tool said → its value: the structured content where there is one, the text where there is only text (blocks
 * joined by a newline), else the list of content blocks. Throws `tool-failed` with the tool's own words for `isError`.
 */
export function toValue({ content, structuredContent, isError }: CallToolResult, failed: string): unknown {
  if (isError === true) throw new MillraceError('tool-failed', textOf(content) || failed)
  if (structuredContent !== undefined) return structuredContent
  return content.every((block) => block.type === 'text') ? textOf(content) : content
}

function textOf(content: CallToolResult['content']): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

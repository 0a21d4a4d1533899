import type { CallToolResult } from '@modelcontextprotocol/client'
import { MillraceError } from '../../part/error.ts'

/**
 * Converts a tool result to a value: the structured content if present, the text if all blocks are text (joined by
 * newlines), else the list of content blocks. Throws `tool-failed` with the tool's text for `isError`. `forModel`: pictures and
 * the like that stand beside the structured content are kept, in a list with it.
 */
export function toValue(
  { content, structuredContent, isError }: CallToolResult,
  failed: string,
  forModel = false,
): unknown {
  if (isError === true) throw new MillraceError('tool-failed', textOf(content) || failed)
  if (structuredContent !== undefined) {
    const others = forModel ? content.filter(({ type }) => type !== 'text') : []
    if (others.length === 0) return structuredContent
    return [{ type: 'text', text: JSON.stringify(structuredContent) }, ...others]
  }
  return content.every((block) => block.type === 'text') ? textOf(content) : content
}

function textOf(content: CallToolResult['content']): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

/** The result of a tool as the content of a message. */
import { messageOf } from '../../part/error.ts'
import type { AgUiEventOf } from './ag-ui-event.ts'

type Content = AgUiEventOf<'TOOL_CALL_RESULT'>['content']
type ContentPart = Exclude<Content, string>[number]

/**
 * A text as it is; a list of texts, images and sounds, as MCP tools return it, as parts, but for a client older than 1.0 as text;
 * anything else as JSON.
 */
export function toResultContent(result: unknown, old: boolean): Content {
  if (typeof result === 'string') return result
  const parts = Array.isArray(result) ? result.map(toPart) : []
  const isMedia = parts.some((part) => part !== undefined && part.type !== 'text')
  if (!isMedia || !parts.every((part) => part !== undefined)) return JSON.stringify(result) ?? messageOf(result)
  if (!old) return parts
  return parts.map((part) => (part.type === 'text' ? part.text : `[${mediaTypeOf(part)}]`)).join('\n')
}

/** A content block of MCP. */
function toPart(block: unknown): ContentPart | undefined {
  if (typeof block !== 'object' || block === null) return undefined
  const { type, text, data, mimeType } = block as Record<string, unknown>
  if (type === 'text' && typeof text === 'string') return { type, text }
  if (type !== 'image' && type !== 'audio') return undefined
  if (typeof data !== 'string' || typeof mimeType !== 'string') return undefined
  return { type, source: { type: 'data', value: data, mimeType } }
}

function mediaTypeOf(part: Exclude<ContentPart, { type: 'text' }>): string {
  return part.source.mimeType ?? part.type
}

/** The title of a run in a list. */
import { textOf } from '../fold/run-view.ts'
import type { Message } from '../part/message.ts'

const titleLength = 120

/**
 * The start of the last user message in a run's input, or `''`. White space and control characters become single spaces,
 * because titles are printed on terminals.
 */
export function titleOf(input: Record<string, unknown>): string {
  const messages = Array.isArray(input?.messages) ? (input.messages as unknown[]) : []
  const last = messages.findLast(isUserMessage)
  if (last === undefined) return ''
  // A prompt may have megabytes: only look at enough of it for the title.
  const words = textOf(last)
    .slice(0, 2000)
    .trim()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  const cut = words.slice(0, titleLength)
  // Do not split a surrogate pair.
  return (cut.isWellFormed() ? cut : cut.slice(0, -1)).trim()
}

function isUserMessage(value: unknown): value is Message {
  if (typeof value !== 'object' || value === null || (value as Message).role !== 'user') return false
  const { content } = value as Message
  return (
    typeof content === 'string' ||
    (Array.isArray(content) && content.every((part) => part !== null && typeof part === 'object'))
  )
}

/**
 * Identifies a chat turn by the id and content of its last user message. A repeated request joins the run of the first one.
 * Regenerating an answer, or editing a message (which keeps its id), is a new turn.
 */
export function turnKey(body: Record<string, unknown>): string | undefined {
  const { messages, trigger, messageId } = body
  if (trigger === 'regenerate-message' || typeof messageId === 'string' || !Array.isArray(messages)) return undefined
  const last = messages.at(-1) as { id?: unknown; role?: unknown } | undefined
  if (last?.role !== 'user' || typeof last.id !== 'string' || last.id === '') return undefined
  return keyOf(last.id, last)
}

/** The key of a turn with this id and this last message. */
export function keyOf(id: string, last: unknown): string {
  return `${id}:${fnv1a(JSON.stringify(last) ?? '')}`
}

/** FNV-1a, 32 bit (http://www.isthe.com/chongo/tech/comp/fnv/): only distinguishes edited messages from repeated ones. */
function fnv1a(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0).toString(36)
}

/**
 * What makes two chat requests the same turn: the id and the content of the last user message. Sending one again joins
 * its run. Asking to regenerate, and editing a message (which keeps its id), are turns of their own.
 */
export function turnKey(body: Record<string, unknown>): string | undefined {
  const { messages, trigger, messageId } = body
  if (trigger === 'regenerate-message' || typeof messageId === 'string' || !Array.isArray(messages)) return undefined
  const last = messages.at(-1) as { id?: unknown; role?: unknown } | undefined
  if (last?.role !== 'user' || typeof last.id !== 'string' || last.id === '') return undefined
  return `${last.id}:${fnv1a(JSON.stringify(last))}`
}

/** FNV-1a, 32 bit (http://www.isthe.com/chongo/tech/comp/fnv/): tells an edited text from a repeated one, no more. */
function fnv1a(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0).toString(36)
}

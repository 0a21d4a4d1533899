/**
 * Finds the messages that a summary covers in another copy of the conversation: by a hash over what the user and the model said. Tools, reasoning and
 * ids are left out, because clients that keep the history send them in other shapes or not at all.
 */
import { textOf } from '../fold/run-view.ts'
import type { Message } from '../part/message.ts'

interface Unit {
  by: 'user' | 'assistant'
  text: string
  /** The index behind its last message, results of tools included. */
  end: number
}

/** What one said until the other did. */
function unitsOf(messages: readonly Message[]): Unit[] {
  const units: Unit[] = []
  for (const [i, message] of messages.entries()) {
    const { role } = message
    const last = units.at(-1)
    if (role === 'system') continue
    if (role === 'tool') {
      if (last?.by === 'assistant') last.end = i + 1
      continue
    }
    const files = typeof message.content === 'string' ? 0 : message.content.filter(({ type }) => type === 'file').length
    const text = textOf(message).replaceAll(/\s+/gu, ' ').trim() + (files > 0 ? `\n[${files} files]` : '')
    if (role === 'assistant' && last?.by === 'assistant') {
      last.text += text
      last.end = i + 1
    } else units.push({ by: role, text, end: i + 1 })
  }
  return units
}

async function chain(before: string, { by, text }: Unit): Promise<string> {
  const bytes = new TextEncoder().encode(`${before}\n${by}\n${text}`)
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return btoa(String.fromCharCode(...digest)).replace('=', '')
}

/**
 * The hash of the first `upTo` messages. If they end within an answer, it is that of what is before this answer: a client has the answer as one
 * message.
 */
export async function hashOf(messages: readonly Message[], upTo: number): Promise<string> {
  const units = unitsOf(messages.slice(0, upTo))
  const next = messages[upTo]?.role
  if (next !== undefined && next !== 'user' && units.at(-1)?.by === 'assistant') units.pop()
  let hash = ''
  for (const unit of units) hash = await chain(hash, unit)
  return hash
}

/** The number of messages that have this hash; undefined if the conversation does not begin with them. */
export async function endOf(messages: readonly Message[], hash: string): Promise<number | undefined> {
  let at = ''
  for (const unit of unitsOf(messages)) {
    at = await chain(at, unit)
    if (at === hash) return unit.end
  }
  return undefined
}

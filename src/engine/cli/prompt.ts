/** What a CLI agent is asked: one text, whatever the client has sent. */
import { textOf } from '../../fold/run-view.ts'
import { toMessages } from '../input.ts'

/** Messages become a text: the last one, after a transcript of those before it. */
export function toPrompt(value: unknown): string {
  if (typeof value === 'string') return value
  const messages = toMessages(value, 'prompt').filter((message) => message.role !== 'tool' && textOf(message) !== '')
  const last = messages.at(-1)
  if (last === undefined) return ''
  const earlier = messages.slice(0, -1).map((message) => `${message.role}: ${textOf(message)}`)
  if (earlier.length === 0) return textOf(last)
  return `${before}\n\n${earlier.join('\n\n')}\n\n${now}\n\n${textOf(last)}`
}

const before = 'This is the conversation so far:'
const now = 'Answer the next message, the last of the conversation:'

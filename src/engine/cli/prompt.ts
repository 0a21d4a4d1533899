/** The prompt of a CLI agent: one text, in whichever form the client sent it. */
import { MillraceError } from '../../part/error.ts'
import { textOf } from '../../fold/run-view.ts'
import { toMessages } from '../input.ts'

export interface CliPrompt {
  text: string
  /** Whether messages had files, which a text cannot hold. */
  hasFiles: boolean
}

/** Converts messages to a text: the last one, after a transcript of the others. Throws `bad-input` if the prompt is empty. */
export function toPrompt(value: unknown): CliPrompt {
  const prompt = typeof value === 'string' ? { text: value, hasFiles: false } : fromMessages(value)
  if (prompt.text.trim() !== '') return prompt
  throw new MillraceError('bad-input', 'There is nothing to ask the agent: the prompt has no text.', { status: 400 })
}

function fromMessages(value: unknown): CliPrompt {
  const messages = toMessages(value, 'prompt').filter(({ role }) => role !== 'tool')
  const hasFiles = messages.some(
    ({ content }) => typeof content !== 'string' && content.some(({ type }) => type === 'file'),
  )
  const said = messages.filter((message) => textOf(message) !== '')
  const last = said.at(-1)
  const text = last === undefined ? '' : textOf(last)
  const earlier = said.slice(0, -1).map((message) => `${message.role}: ${textOf(message)}`)
  if (earlier.length === 0) return { text, hasFiles }
  return { text: [before, ...earlier, now, text].join('\n\n'), hasFiles }
}

const before = 'This is the conversation so far:'
const now = 'Answer the next message, the last of the conversation:'

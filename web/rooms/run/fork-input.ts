/** The input of a fork: what the person wrote, merged into what the run was given. */
import type { EntryOf } from '../../../src/part/entry.ts'
import type { Message } from '../../../src/part/message.ts'

/** The start of a fork, with what it was given when it went on. */
export function withResumed(
  start: EntryOf<'run-start'>,
  { agent, pipeline, input }: EntryOf<'resume'>,
): EntryOf<'run-start'> {
  return {
    ...start,
    ...(agent !== undefined && { agent }),
    ...(pipeline !== undefined && { pipeline }),
    input: { ...start.input, ...input },
  }
}

/** The last message of the user that the run was given, as text. Undefined: it was given no messages. */
export function lastMessage(input: Record<string, unknown> | undefined): string | undefined {
  if (!Array.isArray(input?.['messages'])) return undefined
  const content = (input['messages'] as Message[]).findLast(({ role }) => role === 'user')?.content
  if (content === undefined || typeof content === 'string') return content ?? ''
  return content.map((part) => ('text' in part ? part.text : '')).join('')
}

/**
 * `message` takes the place of the last one of the user: its files stay, and so does what was said before. `json` has other values of the input.
 * Throws what is wrong with `json`.
 */
export function forkInput(
  given: Record<string, unknown> | undefined,
  json: string,
  message: string,
): Record<string, unknown> | undefined {
  const own = json.trim() === '' ? {} : readObject(json)
  const text = message.trim()
  if (text === '') return Object.keys(own).length === 0 ? undefined : own
  const messages = ((own['messages'] ?? given?.['messages'] ?? []) as Message[]).slice()
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const before = messages[last]?.content
  const files = Array.isArray(before) ? before.filter(({ type }) => type === 'file') : []
  const content = files.length === 0 ? text : [{ type: 'text', text }, ...files]
  const next = { role: 'user', content } as Message
  return { ...own, messages: last < 0 ? [...messages, next] : [...messages.slice(0, last), next] }
}

function readObject(json: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (error) {
    throw new Error(`The input under Advanced is not JSON: ${(error as Error).message}`, { cause: error })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error('The input under Advanced must be an object, such as {"city": "Rome"}.')
  }
  const { messages } = value as { messages?: unknown }
  if (messages !== undefined && !Array.isArray(messages)) throw new Error('"messages" under Advanced must be a list.')
  return value as Record<string, unknown>
}

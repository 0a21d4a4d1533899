/** Reads a message to a run, of HTTP and of Socket.IO. */
import { MillraceError } from '../../part/error.ts'
import type { UserMessage } from '../../part/message.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { ownValue } from '../../part/own-value.ts'
import { messageModes, type MessageMode } from '../../part/sent-message.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { TellOptions } from '../../runtime/tell-run.ts'
import { fromClientMessages } from '../../wire/ui/ui-message.ts'
import { optionalText } from '../http/body.ts'
import { bad } from '../http/query.ts'

export const messageFields = ['content', 'id', 'mode', 'role'] as const

/** A message for a run. Throws `bad-input` with the field. `known`: the keys that the body may have. */
export function readMessage(body: Record<string, unknown>, known: readonly string[]): TellOptions {
  for (const key of Object.keys(body)) {
    if (known.includes(key)) continue
    throw new MillraceError('bad-input', `unknown key "${key.slice(0, 60)}"${didYouMean(key.slice(0, 60), known)}`)
  }
  const role = ownValue(body, 'role')
  if (role !== undefined && role !== 'user') throw bad('role', '"user", or left out')
  const given = ownValue(body, 'content')
  if (given === undefined || given === null || given === '') throw bad('content', 'a text, or a list of parts')
  const id = optionalText(body, 'id')
  const mode = toMode(ownValue(body, 'mode'))
  return { content: toContent(given), ...omitUndefined({ id, mode }) }
}

function toContent(content: unknown): UserMessage['content'] {
  try {
    const [message] = fromClientMessages([{ role: 'user', content }])
    if (message?.role === 'user' && message.content.length > 0) return message.content
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    const message = error.message.replaceAll('messages[0].', '').replaceAll('messages[0]', 'content')
    throw new MillraceError(error.code, message, { status: 400 })
  }
  throw bad('content', 'a text, or a list of parts')
}

function toMode(value: unknown): MessageMode | undefined {
  if (value === undefined || value === null) return undefined
  const mode = messageModes.find((each) => each === value)
  if (mode !== undefined) return mode
  const hint = typeof value === 'string' ? didYouMean(value.slice(0, 60), messageModes) : ''
  throw bad('mode', `one of ${messageModes.join(', ')}${hint}`)
}

/** Reads what clients send. Throws `bad-input` with the place and the cure. */
import { MillraceError } from '../../part/error.ts'
import { isRecordable, maxDepth } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { optionalText } from '../http/body.ts'
import type { Position } from './numbered-wire.ts'

export const messageTypes = ['run_agent', 'tool_result', 'abort_run', 'watch_run', 'request', 'cancel_request'] as const
export type MessageType = (typeof messageTypes)[number]
export type Data = Record<string, unknown>

export interface ClientMessage {
  type: MessageType
  data: Data
}

/** What a message is acknowledged with. `begin`: then the events of the run begin. */
export interface Reply {
  said: object
  begin?: () => void
}

export function readMessage(value: unknown): ClientMessage {
  if (!isObject(value)) throw bad('A message', 'an object {type, data}')
  const type = ownValue(value, 'type')
  const known = messageTypes.find((each) => each === type)
  if (known === undefined) {
    const hint = typeof type === 'string' ? didYouMean(type, messageTypes) : ''
    throw bad('type', `one of ${messageTypes.join(', ')}${hint}`)
  }
  const data = ownValue(value, 'data')
  if (!isObject(data)) throw bad('data', `an object, the data of ${known}`)
  if (!isRecordable(data)) throw bad('data', `JSON of at most ${maxDepth} levels`)
  return { type: known, data }
}

/** An id that must be there. */
export function requiredText(data: Data, name: string): string {
  const text = optionalText(data, name)
  if (text === undefined) throw bad(name, 'a string of 1 to 256 characters')
  return text
}

/** `after` of `watch_run`: a `seq`, or what was sent with the last event. */
export function readPosition(data: Data): Position {
  const after = ownValue(data, 'after') ?? 0
  const { seq, index } = isObject(after)
    ? { seq: ownValue(after, 'seq'), index: ownValue(after, 'index') }
    : { seq: after }
  if (!isCount(seq)) throw bad('after', 'a whole number from 0, or what was sent with the last event')
  if (index === undefined || index === null) return { seq }
  if (!isCount(index)) throw bad('after.index', 'a whole number from 0')
  return { seq, index }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isObject(value: unknown): value is Data {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value)
}

export function bad(name: string, what: string): MillraceError {
  return new MillraceError('bad-input', `${name} must be ${what}.`)
}

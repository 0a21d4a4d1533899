/** Parses messages of clients. Throws `bad-input` with the place and the cure. */
import { MillraceError } from '../../part/error.ts'
import { isRecordable, maxDepth } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { optionalText } from '../http/body.ts'
import type { Entry } from '../../part/entry.ts'
import type { Wire, WireState } from '../../wire/wire.ts'

export const messageTypes = [
  'run_agent',
  'tool_result',
  'message',
  'abort_run',
  'watch_run',
  'request',
  'cancel_request',
  'renew',
] as const
export type MessageType = (typeof messageTypes)[number]
export type Data = Record<string, unknown>

export interface ClientMessage {
  type: MessageType
  data: Data
}

/** The acknowledgement of a message. `begin` starts the events of the run. */
export interface MessageReply {
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

/** A required id. */
export function requiredText(data: Data, name: string): string {
  const text = optionalText(data, name)
  if (text === undefined) throw bad(name, 'a string of 1 to 256 characters')
  return text
}

/** `after` of `watch_run`: a `seq`, or the position of the last event. */
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

/* Adds to each event of a wire its position in the log, so that a client can resume after it. */

/** A position in the stream of a run: after all events of the entries up to `seq`, and after `index` events of the next entry with events. */
export interface Position {
  seq: number
  index?: number
}

/** An event and the position after it. */
export interface NumberedEvent<Event> extends Position {
  event: Event
}

interface Notes<Event> {
  /** Called with each entry before it is encoded, including those that the client has. */
  entry(entry: Entry): void
  /** Called with the events of a beginning that the client has. */
  begun(event: Event): void
}

/** `after`: the client's position. Entries up to its `seq` must be skipped. */
export function numberedWire<Event, Options extends object>(
  wire: Wire<Options, Event[]>,
  after: Position,
  note: Notes<Event>,
): Wire<Options, NumberedEvent<Event>[]> {
  // Numbering has state, so the wire is no longer stateless.
  const { isStateless: _, lastBatch: __, ...rest } = wire
  return {
    ...rest,
    keepAlive: [],
    createEncoder(context, options) {
      const inner = wire.createEncoder(context, options)
      let numbered: NumberedEvent<Event>[] = []
      let known = after.index ?? 0
      let last = after.seq

      function add(events: Event[], seq: number): void {
        for (let i = 0; i < events.length; i++) {
          const event = events[i]!
          if (known > 0) {
            known--
            note.begun(event)
          } else numbered.push(i + 1 === events.length ? { event, seq } : { event, seq: seq - 1, index: i + 1 })
        }
      }

      function take(): NumberedEvent<Event>[] {
        const taken = numbered
        numbered = []
        return taken
      }

      const encoder = {
        state: inner.state as WireState,
        write(entry: Entry) {
          note.entry(entry)
          last = entry.seq
          add(inner.encode(entry), last)
          encoder.state = inner.state
        },
        take,
        encode(entry: Entry) {
          encoder.write(entry)
          return take()
        },
        skip(entry: Entry) {
          note.entry(entry)
          if (isBeginning(entry)) for (const event of inner.encode(entry)) note.begun(event)
          else inner.skip(entry)
          encoder.state = inner.state
        },
        fail(error: Parameters<typeof inner.fail>[0]) {
          // The run is not over: the connection ends, and a client can reconnect and continue.
          if (error.code === 'closing') {
            encoder.state = 'complete'
            return []
          }
          // It is not in the log, so it has no position of its own.
          numbered.push(...inner.fail(error).map((event) => ({ event, seq: last })))
          encoder.state = inner.state
          return take()
        },
      }
      return encoder
    },
  }
}

function isBeginning({ type }: Entry): boolean {
  return type === 'run-start' || type === 'resume'
}

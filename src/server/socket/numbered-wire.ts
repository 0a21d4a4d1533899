/** Adds to each event of a wire its position in the log, so that a client can resume after it. */
import type { Entry } from '../../part/entry.ts'
import type { Wire, WireState } from '../../wire/wire.ts'

/**
 * A position in the stream of a run: behind all events of the entries up to `seq`, and behind `index` events of the next one that
 * has any.
 */
export interface Position {
  seq: number
  index?: number
}

/** An event and the position behind it. */
export interface NumberedEvent<Event> extends Position {
  event: Event
}

export interface Notes<Event> {
  /** Gets each entry before it is encoded, those that the client has included. */
  entry(entry: Entry): void
  /** Gets the events of a beginning that the client has. */
  begun(event: Event): void
}

/** `after`: what the client has. Entries up to its `seq` must be skipped. */
export function numberedWire<Event, Options extends object>(
  wire: Wire<Options, Event[]>,
  after: Position,
  note: Notes<Event>,
): Wire<Options, NumberedEvent<Event>[]> {
  // The position is state.
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
          // The run is not over: the connection ends, and a client that comes again reads on.
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

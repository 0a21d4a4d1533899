/** Collects events as text, for framings in which an event is a piece of text around its JSON. */
import { isPlain } from '../../part/entry-lines.ts'
import type { Frames, Framing } from '../wire.ts'

/** Stands in for the text of a prepared event. In JSON it is ASCII, so that the frames stay one byte a character. */
const marker = '\u0001text\u0001'
const marked = JSON.stringify(marker)
/** Stands in for the number of a prepared event. */
const numberMarker = 9_007_000_000_000_001
/** `000` to `999`. */
const lastDigits = Array.from({ length: 1000 }, (_, i) => String(i).padStart(3, '0'))

/** `end`: the last frame of the stream. */
export function createTextFrames<Event>(frame: (event: Event) => string, end = ''): Frames<Event> {
  let written = ''
  const send = (event: Event): void => {
    if (!frames.muted) written += frame(event)
  }

  /**
   * The number is a time: it is equal in the events of one moment, and only its last digits change within a second. Formatting a large number costs
   * more than the rest of a delta.
   */
  function withNumber(first: string, second: string, close: string): (text: string, number?: number) => void {
    let last = NaN
    let lastHigh = 0
    let head = ''
    let open = ''
    let isJoined = true
    return (text, number = 0) => {
      if (frames.muted) return
      if (number !== last) {
        last = number
        const high = Number.isSafeInteger(number) && number >= 1000 ? Math.floor(number / 1000) : 0
        const digits = high === 0 ? undefined : lastDigits[number - high * 1000]
        if (digits !== undefined && high !== lastHigh) {
          lastHigh = high
          head = [first, String(high)].join('')
        }
        open = (digits === undefined ? first + JSON.stringify(number) : head + digits) + second
        isJoined = false
      } else if (!isJoined) {
        open = [first, JSON.stringify(number), second].join('')
        isJoined = true
      }
      written += isPlain(text) ? open + text + close : open + JSON.stringify(text).slice(1, -1) + close
    }
  }

  /** A separate function, so that its result does not retain `make`. */
  function withoutNumber(before: string, after: string): (text: string) => void {
    // Joined: a substring or a concatenated string makes each later concatenation slower.
    const open = [before, '"'].join('')
    const close = ['"', after].join('')
    return (text) => {
      if (frames.muted) return
      written += isPlain(text) ? open + text + close : before + JSON.stringify(text) + after
    }
  }

  type Make = Parameters<Frames<Event>['prepare']>[0]
  type Say = ReturnType<Frames<Event>['prepare']>

  function prepared(make: Make): Say {
    const made = frame(make(marker, numberMarker))
    const other = frame(make(marker, numberMarker + 1))
    const [before, after, ...more] = made.split(marked)
    const asItIs = (text: string, number = 0) => send(make(text, number))
    // The marker also occurs in another field, or the frame is not JSON.
    if (before === undefined || after === undefined || more.length > 0) return asItIs
    if (made !== other) {
      const [first, second] = before.split(String(numberMarker))
      // The number must come before the text, and its digits must not occur elsewhere.
      const isFound = `${first}${numberMarker + 1}${second}${marked}${after}` === other
      return isFound ? withNumber(first!, `${second}"`, `"${after}`) : asItIs
    }
    return withoutNumber(before, after)
  }

  // A plain field: an object with a getter of its own takes four times the memory.
  const frames: Frames<Event> & { muted: boolean } = {
    muted: false,
    mute: (isMuted) => void (frames.muted = isMuted),
    send,
    // Not before the second delta: the first one must not wait for this preparation.
    prepare(make) {
      let unprepared: Make | undefined = make
      let isFirst = true
      let say: Say | undefined
      return (text, number = 0) => {
        if (say !== undefined) return say(text, number)
        if (isFirst) send(unprepared!(text, number))
        else {
          say = prepared(unprepared!)
          unprepared = undefined
          say(text, number)
        }
        isFirst = false
      }
    },
    end() {
      if (!frames.muted) written += end
    },
    take() {
      const text = written
      written = ''
      return text
    },
  }
  return frames
}

/* Events as server-sent events: one `data:` line of JSON each. */

/** How events become server-sent events. All are optional. */
export interface SseOptions<Event> {
  headers?: Readonly<Record<string, string>>
  /** The event id, with which an `EventSource` reconnects. Default: none. */
  id?: (event: Event) => number | string | undefined
  /** The name of an event, in a line `event:`. Default: none. */
  event?: (event: Event) => string
  /** The data of a final event, such as `[DONE]`. Default: none. */
  done?: string
  /** Creates an encoder for each stream, if there is a faster way to the same JSON. Default: `JSON.stringify`. */
  toJson?: () => (event: Event) => string
}

/** Frames each event as a server-sent event. */
export function sse<Event extends object>({
  headers = {},
  id,
  event: nameOf,
  done,
  toJson,
}: SseOptions<Event> = {}): Framing<Event> {
  function createFrame(): (event: Event) => string {
    const json = toJson?.() ?? JSON.stringify
    const name = (event: Event) => (nameOf === undefined ? '' : `event: ${nameOf(event)}\n`)
    const data = (event: Event) => `${name(event)}data: ${json(event)}\n\n`
    if (id === undefined) return data
    return (event) => {
      const own = id(event)
      return own === undefined ? data(event) : `id: ${own}\n${data(event)}`
    }
  }
  return {
    contentType: 'text/event-stream',
    headers,
    keepAlive: ': keep-alive\n\n',
    open: () => createTextFrames(createFrame(), done === undefined ? '' : `data: ${done}\n\n`),
  }
}

/* Events as lines of JSON. */

/** Frames each event as a line of JSON. `toJson` is as for SSE. */
export function ndjson<Event extends object>({ toJson }: Pick<SseOptions<Event>, 'toJson'> = {}): Framing<Event> {
  return {
    contentType: 'application/x-ndjson',
    // No empty lines: `JSON.parse('')` throws in typical readers.
    keepAlive: '',
    open() {
      const json = toJson?.() ?? JSON.stringify
      return createTextFrames((event) => `${json(event)}\n`)
    },
  }
}

/* Plain text events, concatenated. */

/** Sends events that are text as they are. */
export const plain: Framing<string> = {
  contentType: 'text/plain; charset=utf-8',
  keepAlive: '',
  open: () => createTextFrames((text: string) => text),
}

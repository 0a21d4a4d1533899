/** Events as server-sent events: one `data:` line of JSON each. */
import type { Framing } from '../wire.ts'
import { createTextFrames } from './text-frames.ts'

/** How events become server-sent events. All are optional. */
export interface SseOptions<Event> {
  headers?: Readonly<Record<string, string>>
  /** The event id, with which an `EventSource` reconnects. Default: none. */
  id?: (event: Event) => number | string | undefined
  /** The data of a last event, behind all others, such as `[DONE]`. Default: none. */
  done?: string
  /** Creates for each stream what encodes its events, if it knows a faster way to the same JSON. Default: `JSON.stringify`. */
  toJson?: () => (event: Event) => string
}

/** Frames each event as a server-sent event. */
export function sse<Event extends object>({ headers = {}, id, done, toJson }: SseOptions<Event> = {}): Framing<Event> {
  function createFrame(): (event: Event) => string {
    const json = toJson?.() ?? JSON.stringify
    const data = (event: Event) => `data: ${json(event)}\n\n`
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

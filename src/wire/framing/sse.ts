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
}

/** Frames each event as a server-sent event. */
export function sse<Event extends object>({ headers = {}, id, done }: SseOptions<Event> = {}): Framing<Event> {
  const data = (event: Event) => `data: ${JSON.stringify(event)}\n\n`
  const withId = (event: Event) => {
    const own = id?.(event)
    return own === undefined ? data(event) : `id: ${own}\n${data(event)}`
  }
  const frame = id === undefined ? data : withId
  return {
    contentType: 'text/event-stream',
    headers,
    keepAlive: ': keep-alive\n\n',
    open: () => createTextFrames(frame, done === undefined ? '' : `data: ${done}\n\n`),
  }
}

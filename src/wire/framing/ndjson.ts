/** Events as lines of JSON. */
import type { Framing } from '../wire.ts'
import type { SseOptions } from './sse.ts'
import { createTextFrames } from './text-frames.ts'

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

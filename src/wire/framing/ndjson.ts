/** Events as lines of JSON. */
import type { Framing } from '../wire.ts'
import { createTextFrames } from './text-frames.ts'

/** Frames each event as a line of JSON. */
export function ndjson<Event extends object>(): Framing<Event> {
  return {
    contentType: 'application/x-ndjson',
    // No empty lines: `JSON.parse('')` throws in typical readers.
    keepAlive: '',
    open: () => createTextFrames((event) => `${JSON.stringify(event)}\n`),
  }
}

/** Events as objects, for transports with their own messages, and for a body that is one JSON value. Undefined fields do not count. */
import type { Frames, Framing } from '../wire.ts'

/** Does not frame: pieces are lists of events. */
export function objects<Event>(contentType = 'application/json'): Framing<Event, Event[]> {
  return {
    contentType,
    keepAlive: [],
    open() {
      let events: Event[] = []
      const send = (event: Event): void => {
        if (!frames.muted) events.push(event)
      }
      const frames: Frames<Event, Event[]> & { muted: boolean } = {
        muted: false,
        mute: (isMuted) => void (frames.muted = isMuted),
        send,
        prepare:
          (make) =>
          (text, number = 0) =>
            send(make(text, number)),
        end: () => undefined,
        take() {
          const taken = events
          events = []
          return taken
        },
      }
      return frames
    },
  }
}

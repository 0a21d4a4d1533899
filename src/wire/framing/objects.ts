/** Events as they are, for transports with messages of their own, and for a body that is one JSON. Undefined fields do not count. */
import type { Framing } from '../wire.ts'

/** Does not frame: pieces are lists of events. */
export function objects<Event>(contentType = 'application/json'): Framing<Event, Event[]> {
  return {
    contentType,
    keepAlive: [],
    open() {
      let events: Event[] = []
      let muted = false
      const send = (event: Event): void => {
        if (!muted) events.push(event)
      }
      return {
        get muted() {
          return muted
        },
        mute: (isMuted) => void (muted = isMuted),
        send,
        prepare: (make) => (text) => send(make(text)),
        end: () => undefined,
        take() {
          const taken = events
          events = []
          return taken
        },
      }
    },
  }
}

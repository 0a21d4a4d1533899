/** Events that are text already, one behind the other. */
import type { Framing } from '../wire.ts'

/** Sends events that are text as they are. */
export const plain: Framing<string> = {
  contentType: 'text/plain; charset=utf-8',
  keepAlive: '',
  open() {
    let written = ''
    let muted = false
    const send = (text: string): void => {
      if (!muted) written += text
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
        const text = written
        written = ''
        return text
      },
    }
  },
}

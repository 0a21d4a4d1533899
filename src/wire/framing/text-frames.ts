/** Collects events as text, for framings in which an event is a piece of text around its JSON. */
import { isPlain } from '../../part/entry-lines.ts'
import type { Frames } from '../wire.ts'

/** Stands in for the text of a prepared event. In JSON it is ASCII, so that the frames stay one byte a character. */
const marker = '\u0001text\u0001'
const marked = JSON.stringify(marker)
/** Stands in for the number of a prepared event. */
const numberMarker = 9_007_000_000_000_001
const numberMarked = String(numberMarker)

/** `end`: what ends the stream. */
export function createTextFrames<Event>(frame: (event: Event) => string, end = ''): Frames<Event> {
  let written = ''
  const send = (event: Event): void => {
    if (!frames.muted) written += frame(event)
  }

  function withNumber(first: string, second: string, close: string): (text: string, number?: number) => void {
    let last = -1
    let open = ''
    return (text, number = 0) => {
      if (frames.muted) return
      if (number !== last) {
        last = number
        open = [first, String(number), second].join('')
      }
      written += isPlain(text) ? open + text + close : open + JSON.stringify(text).slice(1, -1) + close
    }
  }

  // A plain field: an object with a getter of its own takes four times the memory.
  const frames: Frames<Event> & { muted: boolean } = {
    muted: false,
    mute: (isMuted) => void (frames.muted = isMuted),
    send,
    prepare(make) {
      const [before, after, ...more] = frame(make(marker, numberMarker)).split(marked)
      // The marker is part of another field as well, or the frame is not JSON.
      if (before === undefined || after === undefined || more.length > 0) {
        return (text, number = 0) => send(make(text, number))
      }
      const [first, second, ...rest] = before.split(numberMarked)
      if (second !== undefined) {
        if (rest.length > 0 || after.includes(numberMarked)) return (text, number = 0) => send(make(text, number))
        return withNumber(first!, `${second}"`, `"${after}`)
      }
      // Joined: a string that was cut from another one, or concatenated, makes each later concatenation slower.
      const open = [before, '"'].join('')
      const close = ['"', after].join('')
      return (text) => {
        if (frames.muted) return
        written += isPlain(text) ? open + text + close : before + JSON.stringify(text) + after
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

/** Reads events that differ from the last parsed one only in their text, without parsing them. See `chunk-template.ts`. */
import { createTemplate, type Template } from './chunk-template.ts'
import type { Choose } from './json-places.ts'

export interface RepeatedEvent {
  data: string
  /** As `createEventStream` passes them. */
  source: string
  from: number
  to: number
  placeOf: Choose
}

/** Does for a text what the event did for its own. `data` is the event's, if it is needed later. */
type Apply = (text: string, data: string) => void

export interface Repeats {
  /** For `createEventStream`. */
  read(source: string, at: number): number
  /** The event may come again with other texts. */
  learn(event: RepeatedEvent, apply: Apply): void
}

/** Templates in a row that no event has matched, after which no more are made: this server changes more than the text. */
const mostMisses = 8

/** Longer events are rare, and looking for their places would cost more than parsing them. */
const mostChars = 4096

export function createRepeats(isOn: boolean): Repeats {
  let template: Template | undefined
  let apply: Apply = () => {}
  let misses = 0

  return {
    read(source, at) {
      if (template === undefined) return at
      let next = at
      while (next < source.length) {
        const end = template.read(source, next)
        if (end === -1) break
        misses = 0
        apply(template.text(), template.data(source, next, end))
        next = end
      }
      return next
    },
    learn({ data, source, from, to, placeOf }, onText) {
      if (!isOn || from < 0 || to - from > mostChars || misses >= mostMisses) return
      misses++
      template = createTemplate(source.slice(from, to), data, placeOf)
      apply = onText
    },
  }
}

/** Decides when an event is worth a template, and applies the current one. */
import type { Choose } from './json-places.ts'
import { createTemplate, type Template } from './template.ts'

export interface Repeated {
  choose: Choose
  /** Does for another text what the event did for its own. */
  apply(text: string): void
  /** Gets the data of the last event of several, if values that nobody has read yet matter. */
  onLast?: ((data: string) => void) | undefined
}

export interface Shortcut {
  /** For `createEventStream`: reads the events at `at` that match the template. */
  read(source: string, at: number): number
  /** What the last event did is all that the next one does, if it differs only in what `choose` has chosen. */
  learn(event: string, data: string, repeated: Repeated): void
  /** Another event came: the template may not be right any more. */
  forget(): void
}

/** Templates in a row without a single match, after which only some are learned: this server changes more than the text. */
const mostMisses = 12

/** Longer events are rare, and looking for their places would cost more than parsing them. */
const mostChars = 4096

export function createShortcut(): Shortcut {
  return new TemplateShortcut()
}

/** A class, because its functions would cost each open answer more than what it knows. */
class TemplateShortcut implements Shortcut {
  /** The event that a template is made of once another one comes: the first delta waits for none. */
  #learned: { event: string; data: string } | undefined = undefined
  #template: Template | undefined = undefined
  #repeated: Repeated | undefined = undefined
  #misses = 0
  #hasMatched = true

  read(source: string, at: number): number {
    const repeated = this.#repeated
    const template = repeated && this.#current(repeated)
    if (template === undefined || repeated === undefined) return at
    let last = -1
    let next = at
    while (next < source.length) {
      const end = template.read(source, next)
      if (end < 0) break
      last = next
      next = end
      repeated.apply(template.text())
    }
    if (last >= 0) {
      this.#hasMatched = true
      repeated.onLast?.(template.data(source, last, next))
    }
    return next
  }

  learn(event: string, data: string, repeated: Repeated): void {
    this.#misses = this.#hasMatched ? 0 : this.#misses + 1
    if (event.length > mostChars || (this.#misses > mostMisses && this.#misses % 64 !== 0)) return
    this.#learned = { event, data }
    this.#repeated = repeated
    this.#hasMatched = false
  }

  #current({ choose }: Repeated): Template | undefined {
    if (this.#learned === undefined) return this.#template
    const { event, data } = this.#learned
    this.#learned = undefined
    return (this.#template = createTemplate(event, data, choose))
  }

  forget(): void {
    this.#learned = this.#template = undefined
  }
}

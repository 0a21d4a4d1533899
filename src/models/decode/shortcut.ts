/** Decides when an event is worth a template, and applies the current one. */
import { learnTemplate, type Template, type TemplateOptions } from './template.ts'

export interface Shortcut {
  /** For `createEventStream`: reads the events at `at` that match the template. */
  read(source: string, at: number): number
  /** What the last event did is all that the next one does, if it differs only in its text. */
  learn(options: TemplateOptions, apply: (text: string) => void): void
  /** Another event came: the template may not be right any more. */
  forget(): void
}

/** Templates in a row without a single match, after which only some are learned: this server changes more than the text. */
const mostMisses = 12

export function createShortcut(): Shortcut {
  let template: Template | undefined
  let apply: (text: string) => void = () => {}
  let misses = 0
  let hasMatched = true

  return {
    read(source, at) {
      let next = at
      while (template !== undefined && next < source.length) {
        const end = template.read(source, next)
        if (end < 0) break
        hasMatched = true
        next = end
        apply(template.text())
      }
      return next
    },
    learn(options, applyText) {
      misses = hasMatched ? 0 : misses + 1
      if (misses > mostMisses && misses % 64 !== 0) return
      template = learnTemplate(options)
      apply = applyText
      hasMatched = false
    },
    forget() {
      template = undefined
    },
  }
}

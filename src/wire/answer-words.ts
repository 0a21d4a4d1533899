/**
 * Merges an answer into one text (and its reasoning into another), for wires with a single text: parallel branches in file
 * order, and a blank line before the text of each further model call, unless the text so far ends in a newline.
 */
import { LateSet } from '../fold/late-map.ts'
import type { EntryOf } from '../part/entry.ts'
import { isUnder } from '../part/path.ts'
import { createDeclaredOrder, type Spoken } from './declared-order.ts'

type Delta = EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>

export interface AnswerWords {
  /** The text to send now, blank lines included; `''` for none. Pass only text that belongs to the answer. */
  add(entry: Delta | EntryOf<'step-start'> | EntryOf<'step-finish'>): string
  /** Drops the held text of a superseded attempt. True if some of its text was already sent and cannot be retracted. */
  reset(path: string): boolean
  /** The text begins anew: no blank line before what comes next. */
  restart(): void
}

export function createAnswerWords(): AnswerWords {
  return new Words()
}

/** Classes, because an answer has up to two: their functions would cost more than what they know. */
class Words implements AnswerWords {
  readonly #order = createDeclaredOrder()
  readonly #paragraphs = new Paragraphs()

  add(entry: Delta | EntryOf<'step-start'> | EntryOf<'step-finish'>): string {
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta':
        if (!this.#order.waits()) return this.#paragraphs.add(entry.step, entry.delta)
        return this.#take({ type: 'say', path: entry.step, text: entry.delta })
      case 'step-start':
        return entry.order === undefined ? '' : this.#take({ type: 'start', path: entry.step, order: entry.order })
      case 'step-finish':
        return this.#order.waits() ? this.#take({ type: 'finish', path: entry.step }) : ''
    }
  }

  #take(event: Spoken): string {
    let words = ''
    for (const { path, text } of this.#order.take(event)) words += this.#paragraphs.add(path, text)
    return words
  }

  reset(path: string): boolean {
    this.#order.forget(path)
    return this.#paragraphs.has(path)
  }

  restart(): void {
    this.#paragraphs.restart()
  }
}

class Paragraphs {
  readonly #begun = new LateSet<string>()
  #last: string | undefined = undefined
  #isAtLineStart = true

  /** The text, with a blank line before it if this path starts after another path's text. */
  add(path: string, text: string): string {
    if (text === '') return ''
    const gap = path === this.#last || this.#isAtLineStart || this.#begun.has(path) ? '' : '\n\n'
    this.#isAtLineStart = text.endsWith('\n')
    if (path !== this.#last) this.#begun.add((this.#last = path))
    return gap + text
  }

  /** Whether any text came from this path or below. */
  has(root: string): boolean {
    for (const path of this.#begun) if (isUnder(path, root)) return true
    return false
  }

  restart(): void {
    this.#isAtLineStart = true
  }
}

/** The output of a run in which no step answered, as text. */
export function outputText(output: unknown): string {
  return typeof output === 'string' ? output : (JSON.stringify(output) ?? '')
}

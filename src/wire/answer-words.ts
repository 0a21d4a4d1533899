/**
 * Merges an answer into one text (and its reasoning into another), for wires with a single text: parallel branches in file
 * order, and a blank line before the text of each further model call, unless the text so far ends in a newline.
 */
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
  const order = createDeclaredOrder()
  const paragraphs = createParagraphs()
  const take = (event: Spoken): string => {
    let words = ''
    for (const { path, text } of order.take(event)) words += paragraphs.add(path, text)
    return words
  }
  return {
    add(entry) {
      switch (entry.type) {
        case 'text-delta':
        case 'reasoning-delta':
          if (!order.waits()) return paragraphs.add(entry.step, entry.delta)
          return take({ type: 'say', path: entry.step, text: entry.delta })
        case 'step-start':
          return entry.order === undefined ? '' : take({ type: 'start', path: entry.step, order: entry.order })
        case 'step-finish':
          return order.waits() ? take({ type: 'finish', path: entry.step }) : ''
      }
    },
    reset(path) {
      order.forget(path)
      return paragraphs.has(path)
    },
    restart: paragraphs.restart,
  }
}

interface Paragraphs {
  /** The text, with a blank line before it if this path starts after another path's text. */
  add(path: string, text: string): string
  /** Whether any text came from this path or below. */
  has(root: string): boolean
  restart(): void
}

function createParagraphs(): Paragraphs {
  const begun = new Set<string>()
  let last: string | undefined
  let isAtLineStart = true
  return {
    add(path, text) {
      if (text === '') return ''
      const gap = path === last || isAtLineStart || begun.has(path) ? '' : '\n\n'
      isAtLineStart = text.endsWith('\n')
      if (path !== last) begun.add((last = path))
      return gap + text
    },
    has(root) {
      for (const path of begun) if (isUnder(path, root)) return true
      return false
    },
    restart() {
      isAtLineStart = true
    },
  }
}

/** The output of a run in which no step answered, as text. */
export function outputText(output: unknown): string {
  return typeof output === 'string' ? output : (JSON.stringify(output) ?? '')
}

/**
 * The words of an answer as one text (and its thoughts as another), for wires that have only one: parallel branches in the
 * order that their file declares, and a blank line before the first words of a further model call, unless what was said
 * ends in a newline.
 */
import type { EntryOf } from '../part/entry.ts'
import { isUnder } from '../part/path.ts'
import { createDeclaredOrder, type Spoken } from './declared-order.ts'

type Delta = EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>

export interface AnswerWords {
  /** What may be said now because of this entry, blank lines included; `''` for nothing yet. Text has to be the answer's. */
  add(entry: Delta | EntryOf<'step-start'> | EntryOf<'step-finish'>): string
  /** An attempt was made void: what is held of it will not be said. True when some of it was, and cannot be taken back. */
  reset(path: string): boolean
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
  }
}

interface Paragraphs {
  /** The text, with a blank line before it when it begins this path's words behind another's. */
  add(path: string, text: string): string
  /** Whether anything was said at or under this path. */
  has(root: string): boolean
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
  }
}

/** The value of a run in which no step answered. */
export function outputText(output: unknown): string {
  return typeof output === 'string' ? output : (JSON.stringify(output) ?? '')
}

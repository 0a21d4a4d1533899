/**
 * The JSON of entries, byte for byte that of `JSON.stringify`. Deltas of a block differ in their numbers and in their text, so what
 * stays the same is made once: they are most of a log, and this takes a third of the time.
 */
import type { Entry } from './entry.ts'

/** Longer texts are quoted by `JSON.stringify`, which reads several characters at a time. */
const mostLooked = 128

/** Whether a text is its own JSON between two quotes. False for a long text, without a look. */
export function isPlain(text: string): boolean {
  if (text.length > mostLooked) return false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    // Controls, the quote, the backslash, and halves of a character, which are escaped when they are alone.
    if (code < 0x20 || code === 0x22 || code === 0x5c || (code >= 0xd800 && code <= 0xdfff)) return false
  }
  return true
}

/**
 * Returns a function that adds the JSON of an entry to lines, behind a line break if there are any. It remembers the last block, so use
 * one for each run.
 */
export function createEntryLines(): (entry: Entry, lines?: string) => string {
  let step: string | undefined
  let type: string | undefined
  let id: string | undefined
  let time: number | undefined
  /** The text between the time and the delta's text, up to its quote. */
  let block = ''
  /** The time and the block. */
  let between = ''
  /** Whether it is one piece of text. Entries of a moment share it; alone it is not worth it. */
  let isWhole = false

  return (entry, lines = '') => {
    if (!isPlainDelta(entry)) return lines === '' ? JSON.stringify(entry) : lines + '\n' + JSON.stringify(entry)
    const { delta, timestamp } = entry
    if (entry.id !== id || entry.step !== step || entry.type !== type) {
      ;({ step, type, id } = entry)
      // Joined: each concatenation with a text that is itself concatenated is slower.
      block = [',"step":', quoted(step), ',"type":"', type, '","id":', quoted(id), ',"delta":"'].join('')
      time = undefined
    }
    if (timestamp !== time) {
      time = timestamp
      between = ',"timestamp":' + timestamp + block
      isWhole = false
    } else if (!isWhole) {
      between = [',"timestamp":', timestamp, block].join('')
      isWhole = true
    }
    // In this order each `+` adds a short text to a long one: the engine notes it down and copies all in one go at the end.
    const head = lines + (lines === '' ? '{"seq":' : '\n{"seq":') + entry.seq + between
    return isPlain(delta) ? head + delta + '"}' : head + JSON.stringify(delta).slice(1) + '}'
  }
}

function quoted(text: string): string {
  return isPlain(text) ? `"${text}"` : JSON.stringify(text)
}

export type PlainDelta = Extract<Entry, { type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta' }>

const keys = ['seq', 'timestamp', 'step', 'type', 'id', 'delta']

/** Whether an entry is a delta with only the fields that every delta has, in the usual order. */
export function isPlainDelta(entry: Entry): entry is PlainDelta {
  const { type } = entry
  if (type !== 'text-delta' && type !== 'reasoning-delta' && type !== 'tool-input-delta') return false
  let i = 0
  for (const key in entry) if (key !== keys[i++]) return false
  return (
    i === keys.length &&
    typeof entry.delta === 'string' &&
    typeof entry.id === 'string' &&
    typeof entry.step === 'string' &&
    Number.isFinite(entry.seq) &&
    Number.isFinite(entry.timestamp)
  )
}

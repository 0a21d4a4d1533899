/** Extracts JSON from a model's text, in linear time. */
import { messageOf, MillraceError } from './error.ts'
import { parseJson } from './json.ts'

/**
 * The JSON value in a text: the whole text, else the first fenced block marked `json` or unmarked, else the text from the
 * first bracket to the last matching closing bracket. Throws `no-json`.
 */
export function readJson(text: string): unknown {
  return findJson(text).value
}

/** The same, with the part of the text that contains it. */
export function findJson(text: string): { value: unknown; json: string } {
  let fault = 'it is empty'
  for (const find of [whole, fenced, bracketed]) {
    const json = find(text)
    if (json === undefined || json.trim() === '') continue
    try {
      return { value: parseJson(json), json }
    } catch (error) {
      // Remove the quoted text from the message.
      fault = messageOf(error).replace(/, (?:\.\.\.)?"[^]*$/u, '')
    }
  }
  throw new MillraceError('no-json', `The text contains no valid JSON (${fault}).`, { detail: text })
}

/** The JSON in a text; returns a text without valid JSON as it is. */
export function jsonOf(text: string): string {
  if (text === '') return text
  try {
    return findJson(text).json.trim()
  } catch {
    return text
  }
}

function whole(text: string): string {
  return text
}

const fence = '```'

function fenced(text: string): string | undefined {
  for (let at = text.indexOf(fence); at >= 0;) {
    const lineEnd = text.indexOf('\n', at)
    if (lineEnd < 0) return undefined
    // Only the last fence of a line can open a block, so each line is read once.
    const mark = text.slice(text.lastIndexOf(fence, lineEnd) + fence.length, lineEnd).trim()
    const end = text.indexOf(fence, lineEnd)
    if (end < 0) return undefined
    if (mark === '' || mark === 'json') return text.slice(lineEnd + 1, end)
    const isBlock = /^[\w+-]+$/u.test(mark)
    at = isBlock ? text.indexOf(fence, end + fence.length) : end
  }
  return undefined
}

function bracketed(text: string): string | undefined {
  const start = text.search(/[{[]/u)
  if (start < 0) return undefined
  const end = text.lastIndexOf(text[start] === '{' ? '}' : ']')
  return end > start ? text.slice(start, end + 1) : undefined
}

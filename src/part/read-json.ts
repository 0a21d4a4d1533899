/** JSON in a model's text. Linear: the text may be long. */
import { messageOf, MillraceError } from './error.ts'
import { parseJson } from './json.ts'

/**
 * The JSON value in a text: the whole of it, else the first fenced block that is marked as JSON or as nothing, else what
 * stands between the first bracket and the last that closes its kind. Throws `no-json`.
 */
export function readJson(text: string): unknown {
  return findJson(text).value
}

/** The same, with the piece of the text that holds it. */
export function findJson(text: string): { value: unknown; json: string } {
  let fault = 'it is empty'
  for (const find of [whole, fenced, bracketed]) {
    const json = find(text)
    if (json === undefined || json.trim() === '') continue
    try {
      return { value: parseJson(json), json }
    } catch (error) {
      // Without the piece of the text that it quotes.
      fault = messageOf(error).replace(/, (?:\.\.\.)?"[^]*$/u, '')
    }
  }
  throw new MillraceError('no-json', `The text holds no JSON (${fault}).`, { detail: text })
}

/** The JSON in a text; a text that was cut off, or holds none, as it is. */
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
    // A line is read once, whatever stands in it: only its last fence can open a block.
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

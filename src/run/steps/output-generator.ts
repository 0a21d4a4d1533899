/** `output-generator`: maps variables to a value, or reads JSON out of a model's text. Calls no model. */
import { messageOf, MillraceError } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import type { OutputConfig } from '../../pipeline/pipeline.ts'

/** `config` has its references resolved already. */
export function generateOutput(config: OutputConfig): unknown {
  return config.json === undefined ? config.template : readJson(config.json)
}

/**
 * The JSON value in a text: the whole of it, else the first fenced block that is marked as JSON or as nothing, else what
 * stands between the first bracket and the last that closes its kind. Linear: the text is a model's, and may be long.
 */
export function readJson(text: string): unknown {
  let fault = 'it is empty'
  for (const find of [whole, fenced, bracketed]) {
    const candidate = find(text)
    if (candidate === undefined || candidate.trim() === '') continue
    try {
      return parseJson(candidate)
    } catch (error) {
      // Without the piece of the text that it quotes.
      fault = messageOf(error).replace(/, (?:\.\.\.)?"[^]*$/u, '')
    }
  }
  throw new MillraceError('no-json', `The text holds no JSON (${fault}).`, { detail: text })
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

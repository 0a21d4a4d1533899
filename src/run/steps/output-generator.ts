/** `output-generator`: maps variables to a value, or reads JSON out of a model's text. Calls no model. */
import { messageOf, MillraceError } from '../../part/error.ts'
import type { OutputConfig } from '../../pipeline/pipeline.ts'

/** `config` has its references resolved already. */
export function generateOutput(config: OutputConfig): unknown {
  return config.json === undefined ? config.template : readJson(config.json)
}

/** The first JSON value in a text: the whole of it, else a fenced block, else the first object or array that parses. */
export function readJson(text: string): unknown {
  const fenced = /```(?:json)?\s*\n([\s\S]*?)\n?```/u.exec(text)?.[1]
  let fault = 'it is empty'
  for (const candidate of [text, fenced, bracketed(text)]) {
    if (candidate === undefined || candidate.trim() === '') continue
    try {
      return JSON.parse(candidate)
    } catch (error) {
      fault = messageOf(error)
    }
  }
  throw new MillraceError('no-json', `The text holds no JSON (${fault}): "${text.slice(0, 80)}".`)
}

/** From the first bracket to the last that matches it in kind. */
function bracketed(text: string): string | undefined {
  const start = text.search(/[{[]/u)
  if (start < 0) return undefined
  const end = text.lastIndexOf(text[start] === '{' ? '}' : ']')
  return end > start ? text.slice(start, end + 1) : undefined
}

/** The length of a tool's result as a model gets it, counted without making its text. */
import { readBlock } from './result-files.ts'

/** A mark in place of a file has about as many characters. */
const markLength = 60

/** Characters. Counts up to a little more than `most`. Files count as the mark that stands in their place. */
export function resultLength(value: unknown, most = Infinity): number {
  if (typeof value === 'string') return value.length
  const left: unknown[] = [value]
  let length = 0
  while (left.length > 0 && length <= most) {
    const at = left.pop()
    if (typeof at === 'string') length += quotedLength(at)
    else if (typeof at !== 'object' || at === null) length += String(at).length
    else if (Array.isArray(at)) {
      length += Math.max(2, at.length + 1)
      // Not `push(...at)`: a long list would overflow the stack.
      for (const each of at) left.push(each)
    } else {
      const block = readBlock(at as Record<string, unknown>)
      if (block !== undefined) {
        length += typeof block === 'string' ? block.length : markLength
        continue
      }
      const fields = Object.entries(at)
      length += Math.max(2, fields.length + 1)
      for (const [key, each] of fields) {
        length += quotedLength(key) + 1
        left.push(each)
      }
    }
  }
  return length
}

// oxlint-disable-next-line no-control-regex -- these are the characters that JSON escapes
const escaped = /["\\\u0000-\u001F\uD800-\uDFFF]/u

function quotedLength(text: string): number {
  return escaped.test(text) ? JSON.stringify(text).length : text.length + 2
}

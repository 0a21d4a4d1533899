/** The length of a tool's result as JSON, or of its text, counted without making it. */

/**
 * Characters. Counts up to a little more than `most`. `block`: the length of what stands for an object, such as a file, in the text for a model;
 * undefined for one that stands there as it is.
 */
export function resultLength(
  value: unknown,
  most = Infinity,
  block?: (fields: Record<string, unknown>) => number | undefined,
): number {
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
      const instead = block?.(at as Record<string, unknown>)
      if (instead !== undefined) {
        length += instead
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

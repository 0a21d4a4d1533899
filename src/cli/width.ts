/** Cuts text to terminal columns: East Asian wide characters and emoji take two, combining marks none. */
const clusters = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** An escape sequence counts like text: what is printed has none, see `printable`. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/u.test(text)) return text.length
  // Its tables take a quarter of the time of a short command.
  const { createRequire } = process.getBuiltinModule('node:module')
  const { default: stringWidth } = createRequire(import.meta.url)('string-width') as typeof import('string-width')
  return stringWidth(text, { countAnsiEscapeCodes: true })
}

/** The text if it fits, else its beginning and `…`. */
export function cut(text: string, columns: number): string {
  // Bounds the work for very long texts: except for combining marks, a character takes at least one column.
  const looked = text.slice(0, columns * 20)
  if (looked.length === text.length && widthOf(text) <= columns) return text
  let kept = ''
  let left = columns - 1
  for (const { segment } of clusters.segment(looked)) {
    left -= widthOf(segment)
    if (left < 0) break
    kept += segment
  }
  return `${kept}…`
}

/** Width of text in terminal columns: East Asian wide characters and emoji take two, combining marks none. */
const clusters = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

// W and F of Unicode's EastAsianWidth.txt, which regular expressions do not support, without rare blocks.
const wide =
  /^[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{1B000}-\u{1B2FF}\u{1F200}-\u{1F2FF}\u{20000}-\u{3FFFD}]/u
const emoji = /^\p{Emoji_Presentation}|\uFE0F/u
const nothing = /^[\p{Mn}\p{Me}\p{Cf}]/u

export function widthOf(text: string): number {
  if (/^[\u0020-\u007E]*$/u.test(text)) return text.length
  let width = 0
  for (const { segment } of clusters.segment(text)) width += widthOfCluster(segment)
  return width
}

/** The text if it fits, else its beginning and `…`. */
export function cut(text: string, columns: number): string {
  // Bounds the work for very long texts: except for combining marks, a character takes at least one column.
  const looked = text.slice(0, columns * 20)
  if (looked.length === text.length && widthOf(text) <= columns) return text
  let kept = ''
  let left = columns - 1
  for (const { segment } of clusters.segment(looked)) {
    left -= widthOfCluster(segment)
    if (left < 0) break
    kept += segment
  }
  return `${kept}…`
}

function widthOfCluster(cluster: string): number {
  if (emoji.test(cluster) || wide.test(cluster)) return 2
  return nothing.test(cluster) ? 0 : 1
}

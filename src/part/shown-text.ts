/** Texts of models and people in a question or a status of MCP: nothing in them hides or changes its neighbours. */

/** Controls, what sets the direction of text, and what has no width or no form of its own. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
const unseenInLines = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** Removes them. Lines stay, tabs become spaces. `most`: characters, the mark of the cut included. */
export function shownText(text: string, most = Infinity): string {
  return cutText(text.replaceAll('\t', ' ').replaceAll(unseenInLines, ''), most)
}

/** The same in one line. */
export function shownLine(text: string, most = Infinity): string {
  const line = text.replaceAll(/\s+/gu, ' ').replaceAll(unseen, '')
  return cutText(line.trim(), most)
}

/** A value as JSON. What cannot be seen is escaped, not removed: a person approves these characters. */
export function shownJson(value: unknown, most = Infinity): string {
  const json = JSON.stringify(value, undefined, 2) ?? 'null'
  // Only text has them: JSON itself has line breaks alone.
  return cutText(json.replaceAll(unseenInLines, escapedJson), most)
}

function escapedJson(char: string): string {
  return Array.from({ length: char.length }, (_, i) => {
    return `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`
  }).join('')
}

/** Never in the middle of a character. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text
  const end = most - 1
  const last = text.charCodeAt(end - 1)
  const isHalf = last >= 0xd800 && last <= 0xdbff
  return `${text.slice(0, isHalf ? end - 1 : end)}…`
}

/** Characters that are invisible or change their neighbours: controls, and those that set the direction of text. */
export const hidden = /[\p{Cc}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu

/** As JSON escapes it. */
export function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Text of a stranger in one line, in which nothing can disguise itself. */
export function visible(text: string): string {
  return text.replaceAll(hidden, escaped)
}

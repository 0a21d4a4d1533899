/**
 * Makes text from a log, a model or a file safe to print on a terminal. Control characters and characters that change the
 * text direction are escaped as in JSON, so JSON stays valid. Line feeds and tabs are kept; carriage returns, which would
 * overwrite the line, are dropped.
 */
const unsafe = /[\p{Cc}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu

export function printable(text: string): string {
  return text.replaceAll(unsafe, (char) => {
    if (char === '\n' || char === '\t') return char
    return char === '\r' ? '' : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** Escapes the text only if the stream is a terminal: programs get it byte for byte. */
export function forStream(text: string, { isTTY }: { isTTY?: boolean }): string {
  return isTTY ? printable(text) : text
}

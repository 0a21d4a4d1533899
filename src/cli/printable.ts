import { escaped, hidden } from '../part/visible.ts'

/**
 * Makes text from a log, a model or a file safe to print on a terminal. Control characters and characters that change the
 * text direction are escaped as in JSON, so JSON stays valid. Line feeds and tabs are kept; carriage returns, which would
 * overwrite the line, are dropped.
 */
export function printable(text: string): string {
  return text.replaceAll(hidden, (char) => {
    if (char === '\n' || char === '\t') return char
    return char === '\r' ? '' : escaped(char)
  })
}

/** Escapes the text only if the stream is a terminal: programs get it byte for byte. */
export function forStream(text: string, { isTTY }: { isTTY?: boolean }): string {
  return isTTY ? printable(text) : text
}

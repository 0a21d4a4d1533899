/**
 * Text of a log, a model or a file, made safe to show: what a terminal would take for a command, or would show in another
 * order than it is, is written as JSON escapes it (so JSON stays JSON). Line feeds and tabs are left; carriage returns,
 * which write over what stands there already, are dropped.
 */
const unsafe = /[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu

export function printable(text: string): string {
  return text.replaceAll(unsafe, (char) => {
    if (char === '\n' || char === '\t') return char
    return char === '\r' ? '' : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** For what programs read as well: made safe for a terminal, left byte for byte where there is none. */
export function forStream(text: string, { isTTY }: { isTTY?: boolean }): string {
  return isTTY ? printable(text) : text
}

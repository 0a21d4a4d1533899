/** The end of what a program wrote to stderr, in one line without colours; undefined when it wrote nothing. */
export function toLastWords(text: string): string | undefined {
  const lines = text
    // oxlint-disable-next-line no-control-regex
    .replaceAll(/\u001B\[[\d;]*[A-Za-z]/g, '')
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
  return lines.length === 0 ? undefined : `it said: ${lines.slice(-3).join(' | ').slice(-500)}`
}

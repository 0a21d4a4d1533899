/** The last three lines of a program's stderr as one line, without colours, at most 500 characters; undefined if it is empty. */
export function stderrTail(text: string): string | undefined {
  const lines = text
    // oxlint-disable-next-line no-control-regex
    .replaceAll(/\u001B\[[\d;]*[A-Za-z]/g, '')
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
  return lines.length === 0 ? undefined : lines.slice(-3).join(' | ').slice(-500)
}

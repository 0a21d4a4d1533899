/** Splits stderr into lines, however long: a line of more than 64 Ki characters comes in pieces. */
const longest = 65_536

export interface StderrLines {
  push(bytes: Uint8Array): void
  end(): void
}

export function createStderrLines(onLine: (line: string) => void): StderrLines {
  const decoder = new TextDecoder()
  let rest = ''

  function add(text: string, isLast: boolean): void {
    const lines = (rest + text).split('\n')
    rest = isLast ? '' : lines.pop()!
    for (const line of lines) say(line.endsWith('\r') ? line.slice(0, -1) : line)
    if (rest.length <= longest) return
    say(rest)
    rest = ''
  }

  function say(line: string): void {
    if (line !== '') onLine(line)
  }

  return {
    push: (bytes) => add(decoder.decode(bytes, { stream: true }), false),
    end: () => add(decoder.decode(), true),
  }
}

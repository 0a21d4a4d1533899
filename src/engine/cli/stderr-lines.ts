import { toLastWords } from '../../tools/mcp/last-words.ts'

/** Splits stderr into lines, however long: a line of more than 64 Ki characters comes in pieces. */
const longest = 65_536

/** The last lines that are kept, and their length. */
const keptLines = 20
const keptLength = 500

export interface StderrLines {
  push(bytes: Uint8Array): void
  end(): void
  /** The last lines with words as one line: they often say why a program has ended. */
  lastWords(): string | undefined
}

export function createStderrLines(onLine: (line: string) => void): StderrLines {
  const decoder = new TextDecoder()
  let rest = ''
  let last: string[] = []

  function add(text: string, isLast: boolean): void {
    const lines = (rest + text).split('\n')
    rest = isLast ? '' : lines.pop()!
    for (const line of lines) say(line.endsWith('\r') ? line.slice(0, -1) : line)
    if (rest.length <= longest) return
    say(rest)
    rest = ''
  }

  function say(line: string): void {
    if (line === '') return
    last = [...last.slice(1 - keptLines), line.slice(0, keptLength)]
    onLine(line)
  }

  return {
    push: (bytes) => add(decoder.decode(bytes, { stream: true }), false),
    end: () => add(decoder.decode(), true),
    lastWords: () => toLastWords(last.filter((line) => !noReason.test(line)).join('\n')),
  }
}

/** Lines that are no reason: of a stack, without a word, and what programs say while they start. */
const noReason = /^\s*at\s|^\W*$|^Node\.js v|^WARNING: proceeding|^Reading (?:prompt|additional input) from stdin/u

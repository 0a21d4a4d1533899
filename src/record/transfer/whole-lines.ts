/** Bytes as whole lines of text, wherever the bytes are cut. */

export interface WholeLines {
  /** The lines that these bytes complete, with their line ends. Throws a {@link LineError}. */
  feed(bytes: Uint8Array): string
  /** What is behind the last line end. A crash may have cut it inside a character. */
  end(): string
}

/** A line that cannot be read. */
export class LineError extends Error {
  override readonly name = 'LineError'
  /** How many of the lines that were not returned yet come before it. */
  readonly before: number

  constructor(before: number, message: string) {
    super(message)
    this.before = before
  }
}

const lineEnd = 10

/** `longest`: bytes of a line. A longer one is not kept while it comes. */
export function createWholeLines(longest: number): WholeLines {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  /** Of the line that is not complete. */
  let pieces: Uint8Array[] = []
  let length = 0

  function keep(bytes: Uint8Array, before: number): void {
    length += bytes.length
    if (length > longest) throw new LineError(before, `the line is longer than ${longest / 1024 / 1024} MiB`)
    if (bytes.length > 0) pieces.push(bytes)
  }

  function take(): Uint8Array {
    const whole = pieces.length === 1 ? pieces[0]! : new Uint8Array(length)
    if (pieces.length > 1) {
      let at = 0
      for (const piece of pieces) {
        whole.set(piece, at)
        at += piece.length
      }
    }
    pieces = []
    length = 0
    return whole
  }

  /** Of whole lines. */
  function decode(bytes: Uint8Array, before: number): string {
    try {
      if (bytes.length <= longest) return decoder.decode(bytes)
    } catch {
      // One of them is to blame.
    }
    let text = ''
    let line = before
    for (let from = 0; from < bytes.length; line++) {
      const end = bytes.indexOf(lineEnd, from) + 1
      keep(bytes.subarray(from, end), line)
      try {
        text += decoder.decode(take())
      } catch {
        throw new LineError(line, 'the line is not valid UTF-8')
      }
      from = end
    }
    return text
  }

  return {
    feed(bytes) {
      const first = bytes.indexOf(lineEnd) + 1
      keep(first === 0 ? bytes : bytes.subarray(0, first), 0)
      if (first === 0) return ''
      const last = bytes.lastIndexOf(lineEnd) + 1
      const text = decode(take(), 0) + decode(bytes.subarray(first, last), 1)
      const rest = bytes.subarray(last)
      keep(rest, rest.length > longest ? text.split('\n').length - 1 : 0)
      return text
    },
    end: () => new TextDecoder('utf-8', { ignoreBOM: true }).decode(take()),
  }
}

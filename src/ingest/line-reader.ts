/**
 * Splits the output of a program into lines, wherever its bytes are cut. Line ends are LF or CRLF; a byte order mark at the start is
 * dropped. A line that is longer than the limit is skipped as it arrives, so that no output can fill the memory.
 */

export interface LineReader {
  /** Chunks may be cut anywhere, inside a character as well. */
  feed(chunk: Uint8Array | string): void
  /** Reads the rest: the last line may have no line end. */
  end(): void
}

export interface LineReaderOptions {
  onLine(line: string): void
  /** Called once for each line that is too long, when its limit is passed. */
  onTooLong(): void
  /** Maximum length of a line, in UTF-16 code units. */
  maxLength: number
}

export function createLineReader({ onLine, onTooLong, maxLength }: LineReaderOptions): LineReader {
  /** For chunks that may end inside a character, and for the one after. */
  const partial = new TextDecoder('utf-8', { ignoreBOM: true })
  const whole = new TextDecoder('utf-8', { ignoreBOM: true })
  let isPartial = false
  /** The unfinished line. Joined only when its end comes: adding up would cost the square of its length. */
  let pieces: string[] = []
  let waiting = 0
  let isSkipping = false
  let isFirst = true

  function decode(bytes: Uint8Array): string {
    if (bytes.length === 0) return ''
    const endsWhole = bytes[bytes.length - 1]! < 0x80
    if (endsWhole && !isPartial) return whole.decode(bytes)
    isPartial = !endsWhole
    return partial.decode(bytes, { stream: true })
  }

  function read(text: string): void {
    let at = 0
    for (;;) {
      const end = text.indexOf('\n', at)
      if (end === -1) break
      take(text.slice(at, end))
      finish()
      at = end + 1
    }
    if (at < text.length) take(at === 0 ? text : text.slice(at))
  }

  function take(piece: string): void {
    if (isSkipping) return
    waiting += piece.length
    if (waiting > maxLength) {
      isSkipping = true
      pieces = []
      onTooLong()
    } else if (piece !== '') pieces.push(piece)
  }

  function finish(): void {
    const line = pieces.length === 1 ? pieces[0]! : pieces.join('')
    const wasSkipped = isSkipping
    pieces = []
    waiting = 0
    isSkipping = false
    if (wasSkipped) isFirst = false
    else deliver(line)
  }

  function deliver(line: string): void {
    let from = 0
    if (isFirst && line.charCodeAt(0) === 0xfeff) from = 1
    isFirst = false
    const end = line.charCodeAt(line.length - 1) === 0x0d ? line.length - 1 : line.length
    if (end > from) onLine(from === 0 && end === line.length ? line : line.slice(from, end))
  }

  return {
    feed(chunk) {
      read(typeof chunk === 'string' ? chunk : decode(chunk))
    },
    end() {
      const rest = partial.decode()
      if (rest !== '') take(rest)
      if (pieces.length > 0 || isSkipping) finish()
    },
  }
}

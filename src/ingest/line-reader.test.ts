import { describe, expect, test } from 'vitest'
import { createLineReader } from './line-reader.ts'

function read(chunks: readonly (Uint8Array | string)[], maxLength = 100): string[] {
  const lines: string[] = []
  const reader = createLineReader({
    maxLength,
    onLine: (line) => lines.push(line),
    onTooLong: () => lines.push('[too long]'),
  })
  for (const chunk of chunks) reader.feed(chunk)
  reader.end()
  return lines
}

const utf8 = new TextEncoder()
const text = '\u{feff}é水😀\r\n\n  \r\n\u2028\u{feff}\rx\r\nlast 😀'
const expected = ['é水😀', '  ', '\u2028\u{feff}\rx', 'last 😀']

describe('createLineReader', () => {
  test('lines are the same wherever bytes or characters are cut, with LF or CRLF, a mark at the start, no end', () => {
    const bytes = utf8.encode(text)
    expect(read([bytes])).toEqual(expected)
    expect(read([text])).toEqual(expected)
    for (let size = 1; size < bytes.length; size++) {
      const cut = <T extends Uint8Array | string>(whole: T) =>
        Array.from({ length: Math.ceil(whole.length / size) }, (_, n) => whole.slice(n * size, (n + 1) * size))
      expect(read(cut(bytes)), `bytes of ${size}`).toEqual(expected)
      expect(read(cut(text)), `characters of ${size}`).toEqual(expected)
    }
  })

  test('an incomplete character at the end is replaced, not lost', () => {
    expect(read([utf8.encode('a😀').slice(0, 3)])).toEqual(['a\ufffd'])
  })

  test('a line that is too long is left out, wherever it is cut; the next one is read', () => {
    const given = `${'a'.repeat(20)}\nb\n${'c'.repeat(20)}`
    for (const size of [1, 3, 50]) {
      const chunks = Array.from({ length: Math.ceil(given.length / size) }, (_, n) =>
        given.slice(n * size, (n + 1) * size),
      )
      expect(read(chunks, 10)).toEqual(['[too long]', 'b', '[too long]'])
    }
    expect(read(['a'.repeat(10)], 10)).toEqual(['a'.repeat(10)])
  })
})

import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createContext } from '../../../test/support/command-context.ts'
import { withFiles } from './input.ts'

function file(name: string, content: string | Uint8Array): string {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, name), content)
  return join(dir, name)
}
const context = createContext()
const latin1 = (text: string) => Buffer.from(text, 'latin1')

describe('withFiles', () => {
  test.each([
    ['image/png', 'a.jpg', '\x89PNG\r\n\x1a\nxx'],
    ['image/jpeg', 'a', '\xff\xd8\xff\xe0'],
    ['image/gif', 'a.gif', 'GIF89a'],
    ['image/webp', 'a.webp', 'RIFF\0\0\0\0WEBPVP8 '],
    ['audio/wav', 'a.wav', 'RIFF\n\0\0\0WAVEfmt '],
    ['image/heic', 'a.heic', '\0\0\0\x18ftypheic'],
    ['video/mp4', 'a.mp4', '\0\0\0\x18ftypisom'],
    ['audio/mpeg', 'a.mp3', 'ID3\x03'],
    ['application/pdf', 'a.bin', '%PDF-1.7'],
    ['application/zip', 'a.ZIP', 'PK\x03\x04\0\0'],
  ])('what a file holds says that it is %s, also when it is called %s', (mediaType, name, bytes) => {
    const path = file(name, latin1(bytes))
    expect(withFiles(context, '', [path])).toEqual([
      { type: 'file', mediaType, data: latin1(bytes).toString('base64'), filename: name },
    ])
  })

  test('text is text, in any language, under its name; the message comes first', () => {
    expect(withFiles(context, 'Look', [file('notes.md', '# Grüße\n')])).toEqual([
      { type: 'text', text: 'Look' },
      { type: 'text', text: 'File notes.md:\n# Grüße\n' },
    ])
    expect(withFiles(context, 'Look', [])).toBe('Look')
  })

  test('what cannot be sent is refused with its name', () => {
    const large = file('large.txt', 'x')
    truncateSync(large, 20 * 1024 * 1024 + 1)
    const half = file('half.txt', 'x'.repeat(11 * 1024 * 1024))
    for (const [paths, message] of [
      [['/no/such.png'], /there is no file \/no\/such\.png/],
      [[tmpdir()], /is not a regular file/],
      [[file('empty.png', '')], /empty\.png is empty/],
      [[large], /large\.txt is too large: the limit for all files together is 20 MiB/],
      [[half, half], /half\.txt is too large/],
      [[file('a.bin', latin1('\0\x01\xfe'))], /a\.bin: unknown file type/],
    ] as const) {
      expect(() => withFiles(context, '', paths)).toThrow(message)
    }
  })
})

import { crc32, inflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { zipOf } from './zip.ts'

test('a ZIP has each text under its name, where its list says', async () => {
  const entries = [
    { name: 'run_1.ndjson', text: '{"seq":1}\n'.repeat(500) },
    { name: 'Über.ndjson', text: '天气\n' },
    { name: 'empty', text: '' },
  ]
  const bytes = Buffer.from(await (await zipOf(entries, new Date(2026, 0, 31, 14, 5, 9))).arrayBuffer())
  const end = bytes.length - 22
  expect(bytes.readUInt32LE(end)).toBe(0x06054b50)
  expect(bytes.readUInt16LE(end + 10)).toBe(entries.length)
  let at = bytes.readUInt32LE(end + 16)
  for (const { name, text } of entries) {
    expect(bytes.readUInt32LE(at)).toBe(0x02014b50)
    const [sum, packed, plain, length] = [at + 16, at + 20, at + 24]
      .map((place) => bytes.readUInt32LE(place))
      .concat(bytes.readUInt16LE(at + 28))
    const start = bytes.readUInt32LE(at + 42)
    expect(bytes.subarray(at + 46, at + 46 + length!).toString()).toBe(name)
    expect(bytes.readUInt32LE(start)).toBe(0x04034b50)
    const data = start + 30 + bytes.readUInt16LE(start + 26)
    const found = inflateRawSync(bytes.subarray(data, data + packed!)).toString()
    expect([found, plain, sum]).toEqual([text, Buffer.byteLength(text), crc32(text)])
    at += 46 + length!
  }
  expect(at).toBe(end)
})

import { expect, test } from 'vitest'
import { createMessageLines } from './message-lines.ts'

const message = { jsonrpc: '2.0' as const, id: 1, result: { text: 'né\u2028' } }
const json = JSON.stringify(message)
const read = (text: string, most = 1000) => createMessageLines(most).read(Buffer.from(text))

test.each([
  ['alone', `${json}\n`],
  ['behind a line', `Server started.\n${json}\n`],
  ['with a carriage return', `${json}\r\n`],
  ['with spaces and keys in another order', ' { "result": {"text": "n\\u00e9\\u2028"}, "id": 1, "jsonrpc": "2.0" }\n'],
  ['behind a print without a line break', `Loading... ${json}\n`],
  ['behind a print with braces', `{ a: 1 } {"b": 2} ${json}\n`],
  ['behind a byte order mark and colours', `\ufeff\u001b[32mok\u001b[0m${json}\n`],
  ['between logs in JSON', `{"level":30,"msg":"x"}\n${json}\n42\nnull\n[1]\n"x"\n{\n}\n`],
  ['between messages that are none', `{"jsonrpc":"1.0","id":1,"result":{}}\n${json}\n{"jsonrpc":"2.0","id":{}}\n`],
])('a message %s', (_, text) => {
  expect(read(text)).toEqual([message])
})

test('a message in pieces, cut at every byte', () => {
  const bytes = Buffer.from(`x\n${json}\n`)
  const lines = createMessageLines(1000)
  const found = [...bytes].flatMap((_, i) => lines.read(bytes.subarray(i, i + 1))!)
  expect(found).toEqual([message])
})

test('a line is bounded, however it comes, and a chunk of many lines is not', () => {
  expect(read(`${json}\n`.repeat(100), json.length + 10)).toHaveLength(100)
  expect(read(`${'x'.repeat(1001)}\n`)).toBeUndefined()
  const lines = createMessageLines(1000)
  const piece = Buffer.alloc(100, 'x')
  for (let i = 0; i < 10; i++) expect(lines.read(piece)).toEqual([])
  expect(lines.read(piece)).toBeUndefined()
})

import { describe, expect, test } from 'vitest'
import { readJson } from './json.ts'

describe('JSON reader', () => {
  test.each([
    ['the whole text', ' {"a": 1}\n'],
    ['a marked block', 'Here:\n```json\n{"a": 1}\n```\nand {more}'],
    ['a block without a mark', '{so}\n```\n{"a": 1}\n```'],
    ['a block with CRLF', '{so}\r\n```json\r\n{"a": 1}\r\n```'],
    ['a block behind one of another kind', '```js\nlet a = {}\n```\nis\n```json\n{"a": 1}\n```'],
    ['a block behind a fence in a sentence', 'I use ``` fences:\n```json\n{"a": 1}\n```\n}'],
    ['brackets in prose', 'It is {"a": 1}, I think.'],
    ['a block that is not closed', '```json\n{"a": 1}'],
  ])('JSON is read out of a text: %s', (_, text) => expect(readJson(text)).toEqual({ a: 1 }))

  test.each([
    ['fences and white space', '```' + ' '.repeat(200_000)],
    ['fences and line ends', '```' + '\n'.repeat(200_000)],
    ['fences alone', '```'.repeat(200_000) + '\n'],
    ['fences on lines of their own', '```x\n'.repeat(100_000)],
  ])('a long text without JSON is refused in no time: %s', (_, text) => {
    expect(() => readJson(text)).toThrow('no valid JSON')
  })

  test('a text of whole JSON is taken as it is, fences and all', () => {
    expect(readJson(JSON.stringify('```json\n1\n```'))).toBe('```json\n1\n```')
  })
})

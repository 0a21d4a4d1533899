import { expect, test } from 'vitest'
import { readProgress, readQuestion } from './answer.ts'

test.each<[object, string | undefined]>([
  [{ progress: 3, total: 10 }, '3 of 10'],
  [{ progress: 1 / 3, total: 1 }, '0.33 of 1'],
  [{ progress: 7 }, '7'],
  [{ progress: 3, total: 10, message: 'Copies rows' }, 'Copies rows (3 of 10)'],
  [{ progress: 3, message: 'Copies rows' }, 'Copies rows'],
  [{ progress: 3, total: 10, message: 'Row 3 of 10' }, 'Row 3 of 10'],
  [{ progress: Number.NaN, message: 'Working\u202e\u0007' }, 'Working'],
  [{ progress: '3', total: {}, message: [] }, undefined],
  [{}, undefined],
  [{ message: 'x'.repeat(10_000) }, `${'x'.repeat(499)}…`],
])('progress in words: %j', (said, words) => {
  expect(readProgress(said as Record<string, unknown>)).toBe(words)
})

const form = { type: 'object', properties: {} }

test.each([
  'javascript:alert(1)',
  'data:text/html,x',
  'file:///etc/passwd',
  ' java\nscript:alert(1)',
  'vbscript:x',
  'nowhere',
])('a question that opens %j is not asked', (url) => {
  expect(() => readQuestion({ mode: 'url', message: 'Open it.', url }, 'The server')).toThrow(
    'asked to open something that is no http or https address',
  )
})

test('an address is shown as it will be opened', () => {
  const url = 'https://example.com@\u0435vil.example/\u202etxt'
  expect(readQuestion({ mode: 'url', message: 'm', url }, 'The server').url).toBe(
    'https://example.com@xn--vil-9za.example/%E2%80%AEtxt'.replace('xn--vil-9za', new URL(url).hostname.split('.')[0]!),
  )
})

test('the words of a question cannot move the name of the server out of sight', () => {
  const message = `Fine.${'\n \n'.repeat(500)}Millrace asks: ${'your key?\n'.repeat(500)}`
  const shown = readQuestion({ message, requestedSchema: form }, 'The server').message
  expect(shown.startsWith('Fine.\n\nMillrace asks: your key?\n')).toBe(true)
  expect(shown.split('\n')).toHaveLength(20)
})

const nested = (levels: number): object => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`) as object

test.each<[string, object]>([
  ['of more than 65536 bytes', { title: 'x'.repeat(65_536) }],
  ['nested deeper than 32 levels', { properties: nested(40) }],
  ['nested deeper than 32 levels', { properties: nested(5000) }],
])('a form %s is not shown', (why, more) => {
  const requestedSchema = { ...form, ...more }
  expect(() => readQuestion({ message: 'm', requestedSchema }, 'The server')).toThrow(why)
})

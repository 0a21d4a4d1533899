import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTemplate } from './chunk-template.ts'

const choose = (path: string) =>
  path === 'a.0.text'
    ? ('text' as const)
    : path.startsWith('n.')
      ? ('number' as const)
      : path === 'pad'
        ? ('string' as const)
        : undefined
const eventOf = (data: string) => `event: x\ndata: ${data}\n\n`
const templateOf = (data: string) => createTemplate(eventOf(data), data, choose)
const sample = '{"n":{"one":1},"a":[{"text":"first","id":"i"}],"pad":"xx","last":null}'

test('reads events that differ in the places only', () => {
  const template = templateOf(sample)!
  const other = eventOf('{"n":{"one":23},"a":[{"text":"\\u00fc\\n","id":"i"}],"pad":"","last":null}')
  const source = `before${other}after`
  const end = template.read(source, 6)
  expect(end).toBe(6 + other.length)
  expect(template.text()).toBe('ü\n')
  expect(JSON.parse(template.data(source, 6, end))).toMatchObject({ n: { one: 23 } })
})

test.each([
  ['another value', '"id":"i"', '"id":"j"'],
  ['an event that is not complete', '}\n\n', '}\n'],
  ['a number with a leading zero', '"one":1', '"one":01'],
  ['a number with a fraction', '"one":1', '"one":1.5'],
  ['a number that not every reader can hold', '"one":1', '"one":1234567890123456'],
  ['a negative number', '"one":1', '"one":-1'],
  ['a text in place of a number', '"one":1', '"one":"1"'],
  ['a number in place of the text', '"first"', '1'],
  ['a raw control character', '"first"', '"a\tb"'],
  ['an escape that JSON does not know', '"first"', '"a\\xb"'],
  ['an escape that nobody reads', '"pad":"xx"', '"pad":"\\x"'],
  ['an end in the middle of the text', '"first"', '"first'],
])('leaves %s to the parser', (_, from, to) => {
  const event = eventOf(sample).replace(from, () => to)
  expect(event).not.toBe(eventOf(sample))
  expect(templateOf(sample)!.read(event, 0)).toBe(-1)
})

test.each([
  ['has no text', '{"a":[{"id":"i"}]}'],
  ['has a key twice', '{"a":[{"text":"x"}],"a":null}'],
  ['has a key twice, written in two ways', '{"a":[{"text":"x"}],"\\u0061":null}'],
  ['has a nameless key', '{"":{"a":[{"text":"x"}]}}'],
  ['has a key that looks like a path', '{"a.0":{"text":"x"}}'],
  ['has no text but a number', '{"a":[{"text":1}]}'],
])('makes none of an event that %s', (_, data) => {
  expect(templateOf(data)).toBeUndefined()
})

test('whatever it reads is what a parser reads', () => {
  const token = fc.oneof(
    fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
    fc.string({ unit: fc.constantFrom('\\', '"', 'u', '0', 'n', '\t', 'é', '\u001f') }).map((text) => `"${text}"`),
    fc.constantFrom('1', '007', '-1', '1e3', 'null', '""', '[]'),
  )
  fc.assert(
    fc.property(token, token, token, (text, number, pad) => {
      const data = `{"n":{"one":${number}},"a":[{"text":${text},"id":"i"}],"pad":${pad},"last":null}`
      const event = eventOf(data)
      const template = templateOf(sample)!
      if (template.read(event, 0) !== event.length) return
      const value = JSON.parse(data) as { a: { text: string }[] }
      expect(value.a[0]?.text).toBe(template.text())
    }),
    { numRuns: 5000 },
  )
})

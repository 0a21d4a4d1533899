import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { JsonTree, toText } from './JsonTree.tsx'

const html = (value: unknown, depth?: number) =>
  renderToStaticMarkup(<JsonTree value={value} {...(depth !== undefined && { depth })} />)

test('a branch is drawn when it is open, and says what is in it when it is not', () => {
  const made = html({ a: { b: { c: 1 } }, list: [1, 2, 3], none: null, empty: [] })
  expect(made).toContain('{ b }')
  expect(made).toContain('[ 3 ]')
  expect(made).toContain('[]')
  expect(made).not.toContain('c: ')
  expect(html({ a: { b: { c: 1 } } }, 3)).toContain('c: ')
  expect(html(Object.fromEntries(Array.from('abcdef', (key) => [key, 1])), 0)).toContain('{ a, b, c, d, … 6 }')
})

test('of a list of a million values a hundred are drawn; of a text of 3 MB 2 KB', () => {
  const many = html(Array.from({ length: 1_000_000 }, () => 7))
  expect(many.length).toBeLessThan(20_000)
  expect(many).toContain('999900 more')
  const long = html({ text: 'x'.repeat(3 * 1024 ** 2) })
  expect(long.length).toBeLessThan(10_000)
  expect(long).toContain('Download (3.0 MB)')
  expect(html('y'.repeat(5000))).toContain('Show all (4.9 KB)')
})

test('markup in names and values is text', () => {
  const made = html({ '<img src=x onerror=alert(1)>': '<svg onload=alert(1)>', ['__proto__']: '</script>' })
  expect(made).not.toMatch(/<img|<svg onload|<\/script/u)
  expect(made).toContain('&lt;img src=x onerror=alert(1)&gt;')
})

test('a text is copied as it is, another value as JSON', () => {
  expect([toText('a\n"b"'), toText({ a: 1 }), toText(undefined)]).toEqual(['a\n"b"', '{\n  "a": 1\n}', 'undefined'])
})

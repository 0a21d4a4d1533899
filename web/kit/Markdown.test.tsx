import fc from 'fast-check'
import { Lexer } from 'marked'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { hostile } from '../../test/support/hostile.ts'
import { Markdown } from './Markdown.tsx'
import { createBlocks } from './markdown/blocks.ts'
import { decodeEntities } from './markdown/entities.ts'
import { markdownOptions } from './markdown/math.ts'
import { safeUrl } from '../../src/react/safe-url.ts'

const html = (text: string, isOpen = false) => renderToStaticMarkup(<Markdown text={text} isOpen={isOpen} />)

test.each(hostile)('%s is inert', (text) => {
  for (const isOpen of [true, false]) {
    const made = html(text, isOpen)
    const tags = [...made.matchAll(/<([a-z0-9]+)([^>]*)>/gu)]
    for (const [, name, attributes] of tags) {
      expect(name).toMatch(
        /^(?:div|p|h\d|a|em|strong|del|code|pre|figure|figcaption|output|span|button|svg|path|table|thead|tbody|tr|th|td|ul|ol|li|blockquote|hr|br)$/u,
      )
      expect(attributes).not.toMatch(/\son\w+=|\sstyle=|\ssrc=/u)
      for (const [, url] of attributes!.matchAll(/href="([^"]*)"/gu)) expect(url).toMatch(/^(?:https?:|mailto:)/u)
    }
  }
})

test('links lead out of the page without telling where from; remote images are links; HTML is text', () => {
  expect(html('[a](https://a.example/x)')).toContain(
    '<a href="https://a.example/x" target="_blank" rel="noopener noreferrer nofollow" title="https://a.example/x">a</a>',
  )
  expect(html('![cat](https://a.example/cat.png)')).toContain('>image: cat</a>')
  expect(html('![](data:image/png;base64,AAAA)')).toContain('<img src="data:image/png;base64,AAAA" alt=""')
  expect(html('a <b>c</b>')).toContain('a &lt;b&gt;c&lt;/b&gt;')
  expect(safeUrl(' mailto:a@b.example ')).toBe('mailto:a@b.example')
})

test('what Markdown has: headings, lists, tasks, tables, code, quotes, entities', () => {
  const made = html(
    '# T\n\n1. a\n2. **b** *c* ~~d~~ `e`\n\n- [x] f\n\n| g | h |\n|:--|--:|\n| 1 | 2 |\n\n```js\nlet x\n```\n\n> q\n\n---\n\n&amp; &copy; &#9731;',
  )
  expect(made).toMatch(/<h3[^>]*>T<\/h3>/u)
  expect(made).toContain('<strong>b</strong> <em>c</em> <del>d</del>')
  expect(made).toContain('type="checkbox"')
  expect(made).toContain('<td style="text-align:right">2</td>')
  expect(made).toContain('<span>js</span>')
  expect(made).toContain('let x')
  expect(made).toContain('<blockquote><p>q</p></blockquote>')
  expect(made).toContain('&amp; © ☃')
  expect(decodeEntities('&#0; &#x110000; &nope; &#xD800;')).toBe('\uFFFD \uFFFD &nope; \uFFFD')
})

test.each([
  ['$E = mc^2$', '$E = mc^2$'],
  ['$$\\int_0^1 x^2\\,dx$$', '$$\\int_0^1 x^2\\,dx$$'],
  ['so $a_i * b_i$ and $c_i * d_i$ are', 'so $a_i * b_i$ and $c_i * d_i$ are'],
  ['*it is $a*b$ here*', 'it is $a*b$ here'],
  [
    '$$\n\\begin{aligned}\na &= b \\\\\n- c\n\\end{aligned}\n$$\n\nThen',
    '$$\n\\begin{aligned}\na &= b \\\\\n- c\n\\end{aligned}\n$$Then',
  ],
  ['Look:\n$$\n+ x\n$$', 'Look:$$\n+ x\n$$'],
  ['$$x$$ is *nice*', '$$x$$ is nice'],
  ['$$\\frac{a', '$$\\frac{a'],
  ['so \\(a_i * b_i\\) and \\(c_i * d_i\\) are', 'so \\(a_i * b_i\\) and \\(c_i * d_i\\) are'],
  ['Look:\n\\[\n+ x_1\n- y_1\n\\]\n\nThen', 'Look:\\[\n+ x_1\n- y_1\n\\]Then'],
  ['\\[\n\\frac{a_1 * b', '\\[\n\\frac{a_1 * b'],
  ['see \\[a_1 * b_1\\] and `\\(x\\)`', 'see \\[a_1 * b_1\\] and \\(x\\)'],
  ['\\[1\\] Smith, \\[2\\] *Jones*', '[1] Smith, [2] Jones'],
  ['a \\\\(b\\\\) c', 'a \\(b\\) c'],
  ['from $5 to **$10** and `$x$` or \\$3', 'from $5 to $10 and $x$ or $3'],
])('formulas stay as they are written: %j', (text, expected) => {
  for (const isOpen of [true, false]) {
    const words = html(text, isOpen)
      .replaceAll(/<[^>]*>/gu, '')
      .replaceAll('&amp;', '&')
    expect(words).toBe(expected)
  }
})

test('half-written marks are shown as what they become', () => {
  expect(html('a **bol', true)).toContain('<strong>bol</strong>')
  expect(html('a `cod', true)).toContain('cod</code>')
  expect(html('see [a link](https://exa', true)).toContain('see a link')
  expect(html('```js\nlet x', true)).toContain('let x')
})

test('however a text grows, its blocks are those of the whole, and closed ones are not made again', () => {
  const pieces =
    '# h\n|word |\n|\n\n|- a\n|  b\n|1. x\n|2|. y\n|> q\n|```\n|code\n|    i\n|===\n|---\n|<div>\n|**b|** |[r]: https://a.example\n|\r\n|*|$$|$a_b$ |\\[|\\]|\\(x_1\\) '
  const piece = fc.constantFrom(...pieces.split('|'), '| a | b |\n', '|---|---|\n')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (list) => {
      const blocks = createBlocks()
      let text = ''
      for (const each of list) blocks.read((text += each), true)
      const whole = new Lexer(markdownOptions).lex(text).map(({ raw }) => raw)
      expect(blocks.read(text, true).map(({ raw }) => raw)).toEqual(whole)
      expect(blocks.read(text, false).map(({ raw }) => raw)).toEqual(whole)
    }),
    { numRuns: 300 },
  )
  const blocks = createBlocks()
  const [first] = blocks.read('# A title\n\nA paragraph that is long enough.\n\nAnother one that is', true)
  expect(blocks.read('# A title\n\nA paragraph that is long enough.\n\nAnother one that is longer', true)[0]).toBe(
    first,
  )
})

test('the cost of a delta is that of the last block', () => {
  const blocks = createBlocks()
  let text = ''
  for (let i = 0; i < 2000; i++) blocks.read((text += `Paragraph ${i} with **some** words.\n\n`), true)
  // About 0.2 s. Parsing all of it each time takes half a minute.
})

test('what is nested beyond reason is shown as text', () => {
  for (const text of [
    '>'.repeat(20_000) + ' x',
    '- '.repeat(2000) + 'x',
    '['.repeat(5000),
    '**a '.repeat(1000),
    '$$ a\n'.repeat(5000),
    '$a '.repeat(5000),
    '\\[ a\n'.repeat(5000),
    '\\(a '.repeat(5000),
    '\\[_'.repeat(5000),
  ]) {
    expect(html(text).length).toBeGreaterThan(0)
  }
})

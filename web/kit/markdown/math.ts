/**
 * Where formulas are: between `$` or `$$`, or in `\(…\)` or `\[…\]`, a backslash, `_` and `*` are the formula's. One that is not finished stays as it
 * is written.
 */
import { Marked, type MarkedOptions, type TokenizerThis, type Tokens } from 'marked'

/** As much of a paragraph as is needed. The bound keeps hostile texts from being read again and again. */
const within = String.raw`(?:(?!\n[ \t]*\n)[^]){0,3000}?`
const rest = within.slice(0, -1)
const ends = String.raw`[ \t]*(?:\n+|$)`
/** The same up to `\]` or `\)`, without code. */
const upTo = (mark: string) => `(?:(?!\\n[ \\t]*\\n|${mark})[^\`]){1,3000}${mark}`

/**
 * From the mark that begins a line to the one that ends a line, or as far as the paragraph goes: `\[` only if nothing follows on its line, because it
 * may be a bracket.
 */
const block = new RegExp(
  [
    String.raw`^ {0,3}\$\$${within}\$\$${ends}`,
    String.raw`^ {0,3}\$\$(?!${within}\$\$)${rest}`,
    String.raw`^ {0,3}\\\[${upTo(String.raw`\\\]`)}${ends}`,
    String.raw`^ {0,3}\\\[[ \t]*(?:\n(?!${within}\\\])${rest}|$)`,
  ].join('|'),
  'u',
)

/** As Pandoc reads them, so that `$5 and $10` are prices: no space inside of the marks, and no digit after the last. */
const inline = new RegExp(
  `^(?:${[
    String.raw`\$\$(?!\$)(?:(?!\n[ \t]*\n)[^]){1,3000}?\$\$`,
    String.raw`\$(?![\s$])(?:\\[^]|(?!\n[ \t]*\n|\*\*)[^$\\${'`'}]){0,3000}?(?<![\s\\])\$(?!\d)`,
    String.raw`(?<!\\)\\\(${upTo(String.raw`\\\)`)}`,
    String.raw`(?<!\\)\\\[${upTo(String.raw`\\\]`)}`,
  ].join('|')})`,
  'u',
)

/** A bracket in a text has a backslash, too: `\[1\]` is no formula. */
function isFormula(raw: string): boolean {
  const [, inner] = /^\s*\\\[([^]*?)(?:\\\]\s*)?$/u.exec(raw) ?? []
  return inner === undefined || /^[ \t]*(?:\n|$)|[\\^_=+<>{}]/u.test(inner)
}

/** What is between the marks. Undefined: the formula is not finished. */
const marks = /^(?:\$\$([^]+)\$\$|\$([^]+)\$|\\\(([^]+)\\\)|\\\[([^]+)\\\])$/u

function math(raw: string, isBlock: boolean): Tokens.Generic {
  const text = raw.trim()
  const [, ...found] = marks.exec(text) ?? []
  return { type: 'math', raw, text, tex: found.find((each) => each !== undefined)?.trim(), block: isBlock }
}

const { defaults } = new Marked({
  gfm: true,
  extensions: [
    {
      name: 'mathBlock',
      level: 'block',
      // The text begins behind the first character of a line: only a later line can begin a formula.
      start: (text: string) => (/\$\$|\\\[/u.test(text) ? /\n {0,3}(?:\$\$|\\\[)/u.exec(text)?.index : undefined),
      tokenizer(this: TokenizerThis, text: string) {
        const raw = block.exec(text)?.[0]
        return raw === undefined || !isFormula(raw) ? undefined : math(raw, true)
      },
    },
    {
      name: 'math',
      level: 'inline',
      start: (text: string) => text.search(/\$|\\[([]/u),
      tokenizer(this: TokenizerThis, text: string) {
        const raw = inline.exec(text)?.[0]
        return raw === undefined || !isFormula(raw) ? undefined : math(raw, false)
      },
    },
  ],
  hooks: {
    // No emphasis begins outside of a formula and ends in it.
    emStrongMask: (text: string) =>
      text.replaceAll(formulas, (formula) => (isFormula(formula) ? 'a'.repeat(formula.length) : formula)),
  },
})

const formulas = new RegExp(inline.source.slice(1), 'gu')

export const markdownOptions: MarkedOptions = defaults

/** Does something with a text in which formulas are words, and puts them back. */
export function withoutFormulas(text: string, change: (text: string) => string): string {
  if (!/\$|\\[([]/u.test(text)) return change(text)
  const found: string[] = []
  const plain = text.replaceAll(formulas, (formula) =>
    isFormula(formula) ? `\uE000${found.push(formula) - 1}\uE001` : formula,
  )
  return change(plain).replaceAll(/\uE000(\d+)\uE001/gu, (_, i) => found[Number(i)] ?? '')
}

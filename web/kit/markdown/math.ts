/**
 * Formulas stay as they are written: between `$` or `$$`, a backslash, `_` and `*` are the formula's. The page draws no formulas; whoever copies one
 * gets all of it.
 */
import { Marked, type MarkedOptions, type TokenizerThis, type Tokens } from 'marked'

/** `$$` on a line until the `$$` that ends a line, or as far as the paragraph goes. The bounds keep hostile texts from being read again and again. */
const block =
  /^ {0,3}\$\$(?:(?!\n[ \t]*\n)[^]){0,3000}?\$\$[ \t]*(?:\n+|$)|^ {0,3}\$\$(?!(?:(?!\n[ \t]*\n)[^]){0,3000}?\$\$)(?:(?!\n[ \t]*\n)[^]){1,3000}/u

/** As Pandoc reads them, so that `$5 and $10` are prices: no space inside of the marks, and no digit after the last. */
const inline =
  /^(?:\$\$(?!\$)(?:(?!\n[ \t]*\n)[^]){1,3000}?\$\$|\$(?![\s$])(?:\\[^]|(?!\n[ \t]*\n|\*\*)[^$\\`]){0,3000}?(?<![\s\\])\$(?!\d))/u

function math(raw: string, isBlock: boolean): Tokens.Generic {
  return { type: 'math', raw, text: raw.trim(), block: isBlock }
}

const { defaults } = new Marked({
  gfm: true,
  extensions: [
    {
      name: 'mathBlock',
      level: 'block',
      // The text begins behind the first character of a line: only a later line can begin a formula.
      start: (text: string) => (text.includes('$$') ? /\n {0,3}\$\$/u.exec(text)?.index : undefined),
      tokenizer(this: TokenizerThis, text: string) {
        const raw = block.exec(text)?.[0]
        return raw === undefined ? undefined : math(raw, true)
      },
    },
    {
      name: 'math',
      level: 'inline',
      start: (text: string) => text.indexOf('$'),
      tokenizer(this: TokenizerThis, text: string) {
        const raw = inline.exec(text)?.[0]
        return raw === undefined ? undefined : math(raw, false)
      },
    },
  ],
  hooks: {
    // No emphasis begins outside of a formula and ends in it.
    emStrongMask: (text: string) => text.replaceAll(formulas, (formula) => 'a'.repeat(formula.length)),
  },
})

const formulas = new RegExp(inline.source.slice(1), 'gu')

export const markdownOptions: MarkedOptions = defaults

/** Does something with a text in which formulas are words, and puts them back. */
export function withoutFormulas(text: string, change: (text: string) => string): string {
  if (!text.includes('$')) return change(text)
  const found: string[] = []
  const plain = text.replaceAll(formulas, (formula) => `\uE000${found.push(formula) - 1}\uE001`)
  return change(plain).replaceAll(/\uE000(\d+)\uE001/gu, (_, i) => found[Number(i)] ?? '')
}

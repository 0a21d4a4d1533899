/**
 * Markdown that grows: cut into blocks of which only the last can still change, so that a delta costs the length of that block and
 * not of the whole text.
 */
import { Lexer, type Links, type Token } from 'marked'
import remend from 'remend'
import { markdownOptions, withoutFormulas } from './math.ts'

export interface MarkdownBlock {
  /** Where it starts in the text. */
  at: number
  raw: string
  tokens: readonly Token[]
}

export interface Blocks {
  /** The blocks of a text that begins with the one read before, or else of another one. `isOpen`: more may follow. */
  read(text: string, isOpen: boolean): readonly MarkdownBlock[]
}

/** A longer block is shown as it is: to parse it again with each delta would stop the page. */
const longest = 100_000

export function createBlocks(): Blocks {
  let closed: MarkdownBlock[] = []
  let closedText = ''
  let links: Links = {}
  let last: { text: string; isOpen: boolean; blocks: readonly MarkdownBlock[] } | undefined

  function read(given: string, isOpen: boolean): readonly MarkdownBlock[] {
    const text = given.includes('\r') ? given.replaceAll(/\r\n?/gu, '\n') : given
    if (last?.text === text && last.isOpen === isOpen) return last.blocks
    const isWhole = !isOpen || !text.startsWith(closedText)
    const before = closed
    if (isWhole) {
      closed = []
      closedText = ''
      links = {}
    }
    const tokens = tokensOf(text.slice(closedText.length), links)
    const found = toBlocks(tokens, closedText.length)
    let blocks: MarkdownBlock[]
    if (isOpen) {
      const open = openFrom(found)
      for (const block of found.slice(0, open)) {
        closed.push(block)
        closedText += block.raw
      }
      blocks = [...closed, ...found.slice(open).map(mended)]
    } else {
      // The whole text once more at its end: what looked like the end of a block may have been none.
      blocks = found.map((block, i) => (before[i]?.raw === block.raw && before[i].at === block.at ? before[i] : block))
    }
    last = { text, isOpen, blocks }
    return blocks
  }

  return { read }
}

function tokensOf(text: string, links: Links): Token[] {
  if (text.length > longest) {
    const end = text.lastIndexOf('\n\n', longest)
    const cut = end > 0 ? end + 2 : longest
    return [...tokensOf(text.slice(0, cut), links), ...tokensOf(text.slice(cut), links)]
  }
  if (tooDeep.test(text)) return [asWritten(text)]
  try {
    const lexer = new Lexer(markdownOptions)
    Object.assign(lexer.tokens.links, links)
    const tokens = lexer.lex(text)
    Object.assign(links, tokens.links)
    return tokens
  } catch {
    // Nested too deep for the parser.
    return [asWritten(text)]
  }
}

/** Quotes and lists in each other that the parser takes seconds for. */
const tooDeep = /(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])[ \t]+){60}/u

function asWritten(text: string): Token {
  return { type: 'text', raw: text, text }
}

function toBlocks(tokens: readonly Token[], from: number): MarkdownBlock[] {
  let at = from
  return tokens.map((token) => {
    const block = { at, raw: token.raw, tokens: [token] }
    at += token.raw.length
    return block
  })
}

/**
 * The index of the first block that may still change: the last that is not blank; and the one before it, as long as the last may become a line of it.
 * Formulas are lines of the paragraph before them once `===` below makes a heading of all.
 */
function openFrom(blocks: readonly MarkdownBlock[]): number {
  const before = (at: number) => blocks.slice(0, at).findLastIndex(isText)
  let at = before(blocks.length)
  const mayBeLine = (each: MarkdownBlock | undefined) => each !== undefined && each.raw.length <= longestMarker
  if (at > 0 && mayBeLine(blocks[at])) at = before(at)
  while (at > 0 && blocks[at]!.tokens[0]!.type === 'math') at = before(at)
  return Math.max(0, at)
}

/** `123456789. ` */
const longestMarker = 11

function isText({ tokens }: MarkdownBlock): boolean {
  return tokens[0]!.type !== 'space'
}

/** Half-written marks are closed, so that `**bol` is bold at once. */
function mended(block: MarkdownBlock): MarkdownBlock {
  const { type } = block.tokens[0]!
  if (type === 'space' || type === 'code' || type === 'html' || type === 'math') return block
  const text = withoutFormulas(block.raw, (raw) => remend(raw, { katex: false }))
  return text === block.raw ? block : { ...block, tokens: tokensOf(text, {}) }
}

/** Tokens of Markdown as React elements. HTML stays text, so that nothing in an answer can become markup of this page. */
import { Fragment, type ReactNode } from 'react'
import type { MarkedToken, Token, Tokens } from 'marked'
import { Code } from './Code.tsx'
import { Formula } from './Formula.tsx'
import { decodeEntities } from './entities.ts'
import { isOwnImage, safeUrl } from '../../../src/react/safe-url.ts'
import css from './Markdown.module.css'

/** Deeper ones are shown as they are written. */
const deepest = 40

export function nodes(tokens: readonly Token[], isOpen: boolean, depth = 0): ReactNode[] {
  return tokens.map((token, i) => (
    <Fragment key={i}>{node(token as MarkedToken, isOpen && i === tokens.length - 1, depth + 1)}</Fragment>
  ))
}

function node(token: MarkedToken, isOpen: boolean, depth: number): ReactNode {
  if (depth > deepest) return token.raw
  const inner = (tokens: readonly Token[] | undefined) => nodes(tokens ?? [], isOpen, depth)
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'paragraph':
      return <p>{inner(token.tokens)}</p>
    case 'heading': {
      // The page has headings of its own above those of an answer.
      const Heading = `h${Math.min(6, token.depth + 2)}` as 'h3'
      return <Heading className={css[`h${token.depth}`]}>{inner(token.tokens)}</Heading>
    }
    case 'code':
      return <Code text={token.text} language={token.lang ?? ''} isOpen={isOpen} />
    case 'blockquote':
      return <blockquote>{inner(token.tokens)}</blockquote>
    case 'list':
      return list(token, isOpen, depth)
    case 'list_item':
      return <li>{inner(token.tokens)}</li>
    case 'checkbox':
      return <input type="checkbox" checked={token.checked} disabled aria-label={token.checked ? 'done' : 'to do'} />
    case 'table':
      return table(token, depth)
    case 'hr':
      return <hr />
    case 'html':
      return 'block' in token && token.block ? <pre className={css.html}>{token.text}</pre> : token.text
    case 'text':
      return token.tokens === undefined ? decodeEntities(token.text) : inner(token.tokens)
    case 'escape':
      return token.text
    case 'strong':
      return <strong>{inner(token.tokens)}</strong>
    case 'em':
      return <em>{inner(token.tokens)}</em>
    case 'del':
      return <del>{inner(token.tokens)}</del>
    case 'codespan':
      return <code className={css.span}>{token.text}</code>
    case 'br':
      return <br />
    case 'link':
      return link(token.href, inner(token.tokens))
    case 'image':
      if (isOwnImage(token.href)) return <img src={token.href} alt={token.text} className={css.image} />
      return link(token.href, [token.text === '' ? token.href : token.text], 'image: ')
    default:
      if (isMath(token)) return math(token)
      // A type of a later version of the parser.
      return (token as Token).raw
  }
}

function isMath(token: Token): token is Tokens.Generic {
  return (token.type as string) === 'math'
}

function math({ text, tex, block }: Tokens.Generic): ReactNode {
  return <Formula source={text as string} tex={tex as string | undefined} isBlock={block === true} />
}

function link(href: string, words: ReactNode[], before = ''): ReactNode {
  const url = safeUrl(href)
  if (url === undefined) return words
  return (
    <a href={url} target="_blank" rel="noopener noreferrer nofollow" title={url}>
      {before}
      {words}
    </a>
  )
}

function list({ ordered, start, items }: Tokens.List, isOpen: boolean, depth: number): ReactNode {
  const shown = items.map((item, i) => (
    <li key={i} className={item.task ? css.task : undefined}>
      {nodes(item.tokens, isOpen && i === items.length - 1, depth)}
    </li>
  ))
  return ordered ? <ol start={start === '' ? 1 : start}>{shown}</ol> : <ul>{shown}</ul>
}

function table({ header, rows, align }: Tokens.Table, depth: number): ReactNode {
  const style = (i: number) => {
    const side = align[i]
    return side === null || side === undefined ? undefined : { textAlign: side }
  }
  return (
    // It scrolls sideways by itself, and by keys when it has the focus.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={css.table} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {header.map((cell, i) => (
              <th key={i} style={style(i)}>
                {nodes(cell.tokens, false, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, r) => (
            <tr key={r}>
              {row.map((cell, i) => (
                <td key={i} style={style(i)}>
                  {nodes(cell.tokens, false, depth)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

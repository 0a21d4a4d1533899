/**
 * TeX as MathML. The library makes a tree of it; what of the tree may stand on the page is listed here, so that no formula brings a link, a picture, a
 * script or a style that reaches beyond it. Loaded with the first formula.
 */
import { createElement, type ReactNode } from 'react'
import temml from 'temml/temml.js'
import css from './mathml.module.css'

const options = {
  // What is wrong, unknown or not trusted throws.
  throwOnError: true,
  trust: false,
  maxExpand: 200,
  maxSize: [40, 40] as [number, number],
}

/** A longer one is shown as it is written, and so is one of more nodes. */
const longest = 3000
const mostNodes = 5000
const deepest = 100

/** Undefined if it has a mistake, or something that is not allowed. */
export function mathml(tex: string, isBlock: boolean): ReactNode | undefined {
  if (tex.length > longest) return undefined
  try {
    const tree = temml.__renderToMathMLTree(tex, { ...options, displayMode: isBlock }) as TreeNode
    return toNode(tree, { left: mostNodes }, 0)
  } catch {
    return undefined
  }
}

/** A node of the library's tree. Text has no type and no children; a list of nodes has no type. */
interface TreeNode {
  type?: unknown
  text?: unknown
  href?: unknown
  attributes?: Record<string, unknown>
  style?: Record<string, unknown>
  classes?: unknown[]
  children?: TreeNode[]
}

const elements: ReadonlySet<unknown> = new Set(
  (
    'math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext ' +
    'mtr munder munderover'
  ).split(' '),
)

const attributes: ReadonlySet<string> = new Set(
  (
    'accent accentunder columnspan depth display displaystyle fence form height largeop linethickness lspace mathbackground mathcolor mathsize mathvariant ' +
    'maxsize minsize movablelimits notation rowspan rspace scriptlevel separator stretchy symmetric voffset width'
  ).split(' '),
)

const styles: ReadonlySet<string> = new Set(
  'border borderBottom borderLeft borderRight borderTop color height marginLeft marginRight padding paddingBottom paddingLeft paddingRight paddingTop width'.split(
    ' ',
  ),
)

/** Numbers, lengths, words and colours: no address, and no function. */
const plain = /^[\w#.%+ -]{1,60}$/u

/** What is larger would cover what is not the formula's. */
function isPlain(value: unknown): value is string | number | boolean {
  const text = String(value)
  if (!plain.test(text) || text === 'undefined') return false
  return [...text.matchAll(/(?<![\w#])-?[\d.]+/gu)].every(([number]) => Number(number) >= -4 && Number(number) <= 100)
}

function toNode(node: TreeNode, room: { left: number }, depth: number): ReactNode {
  if (room.left-- <= 0 || depth > deepest) throw new RangeError('too large')
  if (node.children === undefined) {
    if (typeof node.text !== 'string') throw new TypeError('no text')
    return node.text
  }
  const children = node.children.map((child) => toNode(child, room, depth + 1))
  if (node.type === undefined) {
    // A list; a link or another element of HTML is none.
    if (node.href !== undefined || node.attributes !== undefined) return createElement('mrow', null, ...children)
    return children.length === 1 ? children[0] : createElement('mrow', null, ...children)
  }
  if (!elements.has(node.type)) throw new TypeError('not MathML')
  const given = Object.entries(node.attributes ?? {}).filter(
    ([name, value]) => attributes.has(name.toLowerCase()) && isPlain(value),
  )
  const style = Object.entries(node.style ?? {}).filter(([name, value]) => styles.has(name) && isPlain(value))
  const names = (node.classes ?? []).flatMap((name) => css[String(name)] ?? [])
  const props = {
    ...Object.fromEntries(given.map(([name, value]) => [name.toLowerCase(), String(value)])),
    ...(style.length > 0 && { style: Object.fromEntries(style.map(([name, value]) => [name, String(value)])) }),
    ...(names.length > 0 && { className: names.join(' ') }),
  }
  return createElement(node.type as string, props, ...children)
}

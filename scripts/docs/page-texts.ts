/**
 * Every text of the page, read out of its source as gettext would: what stands between tags, in labels and titles, and in strings that are
 * sentences. A hole has the name of what fills it: `{count} more steps`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { parseSync } from 'rolldown/utils'

export interface PageText {
  text: string
  /** From the folder `web` on. */
  file: string
}

const web = new URL('../../web/', import.meta.url)

/** By room, then by text. A text that several files of a room have stands once. */
export function pageTextsDoc(): string {
  const groups = Map.groupBy(pageTexts(), ({ file }) => roomOf(file))
  const sections = [...groups]
    .toSorted(([a], [b]) => compare(a, b))
    .map(([room, texts]) => {
      const files = Map.groupBy(texts, ({ text }) => text)
      const lines = [...files]
        .toSorted(([a], [b]) => compare(a.toLowerCase(), b.toLowerCase()) || compare(a, b))
        .map(([text, found]) => `  ${text}  [${[...new Set(found.map(({ file }) => nameOf(file)))].join(', ')}]`)
      return [room, ...lines, ''].join('\n')
    })
  const head = 'All texts of the page. Written by `npm run docs`: change the code, not this file.\n'
  return `${[head, ...sections].join('\n').trimEnd()}\n`
}

export function pageTexts(): PageText[] {
  return readdirSync(web, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /\.tsx?$/u.test(file) && !/\.test\.|\.d\.ts$|(^|\/)testing\/|vite\.config/u.test(file))
    .toSorted(compare)
    .flatMap((file) => textsIn(file, readFileSync(new URL(file, web), 'utf8')).map((text) => ({ text, file })))
}

function roomOf(file: string): string {
  const folders = file.split('/').slice(0, -1)
  return folders.slice(0, folders[0] === 'rooms' ? 2 : 1).join('/') || 'page'
}

function nameOf(file: string): string {
  return file.split('/').at(-1)!
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

interface Node {
  type: string
  [key: string]: unknown
}

/** Attributes of elements, and fields of objects, that are shown or read aloud. */
const shown =
  /^(aria-(label|valuetext|description|roledescription)|title|label|placeholder|alt|text|about|word|words)$/u
/** What a program reads. */
const hidden =
  /^(className|class|type|role|href|to|key|id|d|viewBox|name|look|icon|style|accept|rel|target|value|htmlFor|autoComplete|inputMode|data-.*|aria-(?!label|valuetext|description|roledescription).*)$/u
/** Calls whose texts a program reads, too. */
const internal =
  /^(querySelector|querySelectorAll|closest|matches|useMedia|matchMedia|api|fetchApi|get|set|has|delete|addEventListener|removeEventListener|getItem|setItem|remember|remembered|useRemembered|includes|startsWith|endsWith|split|join|replace|replaceAll|padStart|padEnd|createElement|getAttribute|setAttribute|test|exec|append|indexOf|define|theme|of|useResource|useWindow|request)$/u
/** Names of keys, and the like. */
const names =
  /^(Arrow\w+|Enter|Escape|Esc|Home|End|Page(Up|Down)|Space|Tab|Backspace|Delete|Shift\S*|Mod\S*|Authorization|Bearer|GET|POST|PUT|HEAD|DELETE|PATCH|Chromium|Error|NaN|Infinity|POST \S+)$/u
/** Elements that are part of the sentence around them. */
const inline = /^(b|strong|em|code|kbd|small|i|span|a|Link|abbr|q|var|button|time)$/u

/** Elements that add no words to the sentence around them. */
const silent = /^(br|Icon|Copy|input|select|textarea)$/u

export function textsIn(file: string, source: string): string[] {
  const { program, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file} cannot be read: ${errors[0]!.message}`)
  const found: string[] = []
  const add = (text: string, isShown = false) => {
    const plain = text.replaceAll(/\s+/gu, ' ').trim()
    if (isShown ? /\p{L}{2}/u.test(plain.replaceAll(/\{[^}]*\}/gu, '')) : isSentence(plain)) found.push(plain)
  }
  walk(program as unknown as Node, false)
  return [...new Set(found)]

  /** `isShown`: each string in it is a text, also a single word in small letters. */
  function walk(node: unknown, isShown: boolean): void {
    if (Array.isArray(node)) {
      for (const each of node) walk(each, isShown)
      return
    }
    if (!isNode(node)) return
    switch (node.type) {
      case 'ImportDeclaration':
      case 'ExportAllDeclaration':
      case 'TSInterfaceDeclaration':
      case 'TSTypeAliasDeclaration':
      case 'TSTypeAnnotation':
      case 'TSTypeParameterInstantiation':
        return
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
      case 'TSNonNullExpression':
        return walk(node['expression'], isShown)
      case 'Literal':
        if (typeof node['value'] === 'string') add(node['value'], isShown)
        return
      case 'TemplateLiteral':
        add(written(node), isShown)
        return walk(node['expressions'], false)
      case 'JSXElement':
      case 'JSXFragment':
        walk((node['openingElement'] as Node | undefined)?.['attributes'], false)
        return children(node)
      case 'JSXExpressionContainer':
        return walk(node['expression'], isShown)
      case 'JSXAttribute': {
        const name = attributeName(node)
        if (!hidden.test(name)) walk(node['value'], shown.test(name))
        return
      }
      case 'ConditionalExpression':
        walk(node['test'], false)
        walk(node['consequent'], isShown)
        return walk(node['alternate'], isShown)
      case 'LogicalExpression':
        walk(node['left'], false)
        return walk(node['right'], isShown)
      case 'BinaryExpression':
        return walk(
          [node['left'], node['right']].filter((each) => !isText(each)),
          false,
        )
      case 'SwitchCase':
        return walk(node['consequent'], false)
      case 'Property':
      case 'PropertyDefinition': {
        const key = node['key'] as Node
        if (node['computed'] === true) walk(key, false)
        const name = wordOf(key['name']) || wordOf(key['value'])
        if (!hidden.test(name) || name === 'name') walk(node['value'], shown.test(name))
        return
      }
      case 'CallExpression':
      case 'NewExpression': {
        const isInternal = internal.test(nameIn(node['callee'] as Node))
        walk(node['callee'], false)
        return walk(
          (node['arguments'] as Node[]).filter((each) => !isInternal || !isText(each)),
          false,
        )
      }
      case 'MemberExpression':
        return isText(node['object']) ? undefined : walk(node['object'], false)
      default:
        for (const [key, value] of Object.entries(node)) if (key !== 'type') walk(value, isPassed(node.type) && isShown)
    }
  }

  /** Text and what is in it is one sentence; without text of its own, each child is for itself. */
  function children(node: Node): void {
    const all = node['children'] as Node[]
    if (!all.some((child) => child.type === 'JSXText' && /\p{L}/u.test(String(child['value'])))) {
      for (const child of all) walk(child, child.type === 'JSXExpressionContainer')
      return
    }
    add(all.map(sentence).join(''), true)
    for (const child of all) inside(child)
  }

  function sentence(node: Node): string {
    if (node.type === 'JSXText') return String(node['value']).replaceAll(/\s*\n\s*/gu, ' ')
    if (node.type === 'JSXExpressionContainer') return written(node['expression'] as Node)
    if (node.type !== 'JSXElement') return ''
    const name = elementName(node)
    if (!inline.test(name)) return silent.test(name) ? ' ' : `{${name}}`
    return (node['children'] as Node[]).map(sentence).join('')
  }

  /** What is not already in the sentence: labels of elements, and texts in their code. */
  function inside(node: Node): void {
    if (node.type === 'JSXText') return
    if (node.type === 'JSXExpressionContainer') {
      const expression = node['expression'] as Node
      if (!isText(expression) && !isChoice(expression)) walk(expression, false)
      return
    }
    if (node.type !== 'JSXElement' || !inline.test(elementName(node))) return walk(node, false)
    walk((node['openingElement'] as Node)['attributes'], false)
    for (const child of node['children'] as Node[]) inside(child)
  }
}

/** An expression as it stands in a text. */
function written(node: Node): string {
  switch (node.type) {
    case 'Literal':
      return typeof node['value'] === 'number' ? `${node['value']}` : wordOf(node['value'])
    case 'TemplateLiteral': {
      const holes = node['expressions'] as Node[]
      const pieces = node['quasis'] as { value: { cooked: string } }[]
      return pieces.map(({ value }, i) => value.cooked + (holes[i] === undefined ? '' : written(holes[i]))).join('')
    }
    case 'ConditionalExpression': {
      const [yes, no] = [written(node['consequent'] as Node), written(node['alternate'] as Node)]
      return isChoice(node) ? `{${yes}|${no}}` : '{…}'
    }
    case 'JSXEmptyExpression':
      return ''
    case 'LogicalExpression':
      return node['operator'] === '&&' ? '{…}' : written(node['left'] as Node)
    default:
      return `{${nameIn(node) || '…'}}`
  }
}

function isChoice(node: Node): boolean {
  return node.type === 'ConditionalExpression' && [node['consequent'], node['alternate']].every(isText)
}

function isText(node: unknown): boolean {
  return (
    isNode(node) && (node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node['value'] === 'string'))
  )
}

/** `run.title` → `title`, `count(n)` → `n`. */
function nameIn(node: Node): string {
  switch (node.type) {
    case 'Identifier':
      return String(node['name'])
    case 'MemberExpression':
      return node['computed'] === true ? nameIn(node['object'] as Node) : nameIn(node['property'] as Node)
    case 'CallExpression': {
      const [first] = node['arguments'] as Node[]
      return (first && nameIn(first)) || nameIn(node['callee'] as Node)
    }
    case 'ChainExpression':
    case 'TSNonNullExpression':
    case 'TSAsExpression':
      return nameIn(node['expression'] as Node)
    case 'LogicalExpression':
    case 'BinaryExpression':
      return nameIn(node['left'] as Node)
    default:
      return ''
  }
}

/** Values of these are where they stand. */
function isPassed(type: string): boolean {
  return type === 'ParenthesizedExpression' || type === 'ArrayExpression' || type === 'SequenceExpression'
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'
}

function attributeName(node: Node): string {
  const { name } = node['name'] as Node
  return isNode(name) ? wordOf(name['name']) : wordOf(name)
}

function elementName(node: Node): string {
  return wordOf(((node['openingElement'] as Node)['name'] as Node)['name'])
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Words that a person reads: a sentence, or a word that begins with a capital letter. */
function isSentence(text: string): boolean {
  if (names.test(text) || /^[./#([<*@:]|^\w+:\/\/|[;=]\s*$|=>|^M[\d.]|application\/|^--|\bvar\(/u.test(text))
    return false
  if (/^[A-Z][a-z]+$/u.test(text)) return text.length > 2
  // Selectors, and code to copy.
  if (/\[role=|textarea,|; await |import |workflow:|headers:|process\.env|Authorization/u.test(text)) return false
  if (/\b(px|rem|fr|deg)\b|light-dark|rgba?\(|[{}]\s*[;:]|^\w+[-=]\S*$|\w\(\w*\)\s/u.test(text)) return false
  return /\p{L}{2,}[,:.]? (\p{L}|\{)/u.test(text) && !/^\s*[\w-]+: *\S+$/u.test(text)
}

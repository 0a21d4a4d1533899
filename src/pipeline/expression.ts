/**
 * The language of `if` and `while`: comparisons over variables, without arithmetic or function calls.
 *
 *     expression = and { "or" and }
 *     and        = not { "and" not }
 *     not        = "not" not | comparison
 *     comparison = operand [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "in" ) operand ]
 *     operand    = reference | text | number | "true" | "false" | "null" | "empty" operand | list | "(" expression ")"
 *     list       = "[" [ operand { "," operand } ] "]"
 *     reference  = "$" name { "." name } [ "?" ]               text = '…' or "…", with \\ before a quote or a backslash
 *
 * `$a.b` without a value is an error; `$a.b?` is then null. Values keep their types: `==` of different types is false (`"5"
 * == 5`), `<` of different types is an error. A condition must be true, false or null (false); anything else is an error:
 * write `not empty $x`. `empty` tests for null, `""`, `[]` or `{}`. `contains` finds a string in a string or an item in a
 * list; `in` tests whether a list has an item. At most 2,000 characters and 50 levels.
 */
import { referenceAt, type Reference } from './reference.ts'

/** Plain data, parsed once when the file is loaded; see `evaluate`. */
export interface Expression {
  text: string
  root: Term
}
export type Term =
  | { kind: 'literal'; value: string | number | boolean | null }
  | { kind: 'reference'; reference: Reference }
  | { kind: 'list'; items: Term[] }
  | { kind: 'not' | 'empty'; of: Term }
  | { kind: 'and' | 'or'; terms: Term[] }
  | { kind: 'compare'; operator: Operator; left: Term; right: Term }
export type Operator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'contains' | 'in'

const maxLength = 2000
const maxDepth = 50

type Token = { at: number; text: string } & (
  | { kind: 'word' | 'end' }
  | { kind: 'literal'; value: string | number }
  | { kind: 'reference'; reference: Reference }
)

class Misread extends Error {
  readonly at: number
  constructor(at: number, message: string) {
    super(message)
    this.at = at
  }
}

/** Returns undefined if the text is not a valid expression, after calling `fault` with the offset (from 0) and the message. */
export function parseExpression(
  text: string,
  fault: (offset: number, message: string) => void,
): { expression: Expression; references: { at: number; reference: Reference }[] } | undefined {
  try {
    if (text.length > maxLength) throw new Misread(0, `the expression is longer than ${maxLength} characters`)
    const tokens = tokenize(text)
    const root = parse(tokens)
    const references = tokens.flatMap((token) =>
      token.kind === 'reference' ? [{ at: token.at, reference: token.reference }] : [],
    )
    return { expression: { text, root }, references }
  } catch (error) {
    if (!(error instanceof Misread)) throw error
    fault(error.at, error.message)
    return undefined
  }
}

const operators: ReadonlySet<string> = new Set<Operator>(['==', '!=', '<', '<=', '>', '>=', 'contains', 'in'])
const words = new Map<string, string | number | boolean | null>([
  ['true', true],
  ['false', false],
  ['null', null],
])
const cures = new Map(
  Object.entries({
    '=': 'write == to compare',
    '===': 'write ==',
    '!==': 'write !=',
    '&&': 'write and',
    '&': 'write and',
    '||': 'write or',
    '|': 'write or',
    '!': 'write not',
    '<>': 'write !=',
  }),
)
const token =
  /(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))|(?<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<word>[A-Za-z_]\w*|[=!<>&|]+|[()[\],])/suy

function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  const blanks = /\s*/y
  let at = 0
  for (;;) {
    blanks.lastIndex = at
    blanks.exec(text)
    at = blanks.lastIndex
    if (at >= text.length) return [...tokens, { kind: 'end', at, text: '' }]
    const found = referenceAt(text, at)
    if (found) {
      tokens.push({ kind: 'reference', at, text: text.slice(at, found.end), reference: found.reference })
      at = found.end
      continue
    }
    token.lastIndex = at
    const match = token.exec(text)
    if (match === null) throw new Misread(at, misreadAt(text, at))
    const { number, quoted } = match.groups!
    if (number !== undefined) tokens.push({ kind: 'literal', at, text: number, value: Number(number) })
    else if (quoted !== undefined) {
      tokens.push({ kind: 'literal', at, text: quoted, value: quoted.slice(1, -1).replaceAll(/\\(.)/gsu, '$1') })
    } else tokens.push({ kind: 'word', at, text: match[0] })
    at = token.lastIndex
  }
}

function misreadAt(text: string, at: number): string {
  const sign = text[at]!
  if (sign === '"' || sign === "'") return `unterminated string; add the closing ${sign}`
  if (sign === '$') return '"$" must be followed by a name, such as $input.name'
  return `unexpected ${JSON.stringify(sign)}; write a comparison, such as $input.count > 3 and not $input.done?`
}

function parse(tokens: readonly Token[]): Term {
  let next = 0
  let depth = 0
  const peek = () => tokens[next]!
  const isWord = (text: string) => peek().kind === 'word' && peek().text === text
  const accept = (text: string) => isWord(text) && ++next > 0

  function nested<T>(body: () => T): T {
    if (++depth > maxDepth) throw new Misread(peek().at, `nested deeper than ${maxDepth} levels`)
    const value = body()
    depth--
    return value
  }

  function parseChain(kind: 'or' | 'and', part: () => Term): Term {
    const at = peek().at
    const first = part()
    if (!isWord(kind)) return first
    const terms = [condition(first, at)]
    while (accept(kind)) {
      const begin = peek().at
      terms.push(condition(part(), begin))
    }
    return { kind, terms }
  }
  const parseOr = () => parseChain('or', () => parseChain('and', parseNot))

  function parseNot(): Term {
    if (!isWord('not')) return parseComparison()
    next++
    const { at } = peek()
    return nested(() => ({ kind: 'not', of: condition(parseNot(), at) }))
  }

  function parseComparison(): Term {
    const left = parseOperand()
    const { text, at, kind } = peek()
    if (kind !== 'word' || !operators.has(text)) return left
    next++
    const right = parseOperand()
    const operator = text as Operator
    checkOperands(operator, left, right, at)
    if (peek().kind === 'word' && operators.has(peek().text)) {
      throw new Misread(peek().at, 'comparisons cannot be chained; join them with "and": 1 < $x and $x < 5')
    }
    return { kind: 'compare', operator, left, right }
  }

  function parseOperand(): Term {
    const each = peek()
    if (each.kind === 'reference') return (next++, { kind: 'reference', reference: each.reference })
    if (each.kind === 'literal') return (next++, { kind: 'literal', value: each.value })
    if (each.kind === 'word' && words.has(each.text)) return (next++, { kind: 'literal', value: words.get(each.text)! })
    if (accept('empty')) return nested(() => ({ kind: 'empty', of: parseOperand() }))
    if (accept('(')) {
      const inner = nested(parseOr)
      expect(')')
      return inner
    }
    if (accept('[')) {
      const items: Term[] = []
      if (accept(']')) return { kind: 'list', items }
      do items.push(nested(parseOperand))
      while (accept(','))
      expect(']')
      return { kind: 'list', items }
    }
    throw new Misread(each.at, unexpected(each, 'expected a value'))
  }

  function expect(text: string): void {
    if (!accept(text)) throw new Misread(peek().at, unexpected(peek(), `expected "${text}"`))
  }

  const { at } = peek()
  const root = condition(parseOr(), at)
  if (peek().kind !== 'end') throw new Misread(peek().at, unexpected(peek(), 'expected the end of the expression'))
  return root
}

function unexpected({ kind, text }: Token, wanted: string): string {
  if (kind === 'end') return `${wanted} at the end`
  const cure = cures.get(text)
  if (cure !== undefined) return `unknown operator "${text}"; ${cure}`
  if (text === 'not') return 'put "not" before the whole comparison: not $x in [1, 2]'
  if (text === 'is') return 'unknown operator "is"; write == to compare, or empty $x'
  if (kind === 'word' && /^\w/.test(text) && !operators.has(text) && text !== 'and' && text !== 'or') {
    return `unknown word "${text}"; quote a string ("${text}"), or write $${text} for a variable`
  }
  return `${wanted} before ${text}`
}

/** Rejects terms that can never be a condition, whatever the variables contain. */
function condition(term: Term, at: number): Term {
  if (term.kind === 'list') throw new Misread(at, 'a list is not true or false; compare it')
  if (term.kind === 'literal' && term.value !== null && typeof term.value !== 'boolean') {
    throw new Misread(at, `${JSON.stringify(term.value)} is not true or false; compare it with something`)
  }
  return term
}

function checkOperands(operator: Operator, left: Term, right: Term, at: number): void {
  const isLiteral = ({ kind }: Term) => kind === 'literal'
  const [list, name] = operator === 'in' ? [right, 'right'] : [left, 'left']
  if (operator === 'in' && isLiteral(right))
    throw new Misread(at, 'the right side of "in" must be a list: $x in [1, 2]')
  if (operator === 'contains' && list.kind === 'literal' && typeof list.value !== 'string') {
    throw new Misread(at, `the ${name} side of "contains" must be a string or a list`)
  }
  if (!/[<>]/.test(operator)) return
  for (const side of [left, right]) {
    const ordered =
      side.kind === 'reference' || (side.kind === 'literal' && /^(?:string|number)$/.test(typeof side.value))
    if (!ordered) throw new Misread(at, `"${operator}" compares two numbers or two strings`)
  }
}

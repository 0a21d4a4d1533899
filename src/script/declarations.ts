/**
 * What a script may use, as TypeScript declarations made from the tools' JSON schemas: models write code over types with fewer mistakes than over schemas. The text
 * depends on nothing but the tools, so that prompt caches hold.
 */
import { ownValue } from '../part/own-value.ts'
import { isObject } from '../pipeline/json-schema/keywords.ts'

export interface DeclaredTool {
  /** As in `tools.<name>`. */
  name: string
  description?: string
  /** JSON Schema of the argument. */
  input?: unknown
  /** JSON Schema of the result. Without: `any`. */
  output?: unknown
}

export interface DeclareOptions {
  /** JSON Schema of `input`. Without: `any`. `false`: there is no `input`. */
  input?: unknown
  /** Characters. Default {@link mostCharacters}. */
  most?: number
}

export const mostCharacters = 24_000

/**
 * All that is in scope of a script: `input`, `tools`, `ask`, `describe`, `console`. If that is more than `most` characters, tools are only named, and scripts
 * get their declarations by `describe(words)`: see {@link describeTools}.
 */
export function declareScope(
  tools: readonly DeclaredTool[],
  { input, most = mostCharacters }: DeclareOptions = {},
): string {
  const rest = scope(input, most)
  const whole = declareTools(tools, most - rest.length)
  return `${whole ?? nameTools(tools, most - rest.length)}\n${rest}`
}

/** For `describe(words)`: the declarations of the tools whose names or descriptions have the most of the words, at most `most` characters. */
export function describeTools(tools: readonly DeclaredTool[], words: string, most = mostCharacters): string {
  const wanted = wordsOf(words)
  const ranked = tools
    .map((tool) => {
      const [name, description] = [wordsOf(tool.name), wordsOf(tool.description ?? '')]
      const isNamed = words.split(/[\s,]+/u).includes(tool.name)
      const score =
        wanted.filter((word) => has(name, word)).length * 2 + wanted.filter((word) => has(description, word)).length
      return { tool, score: score + (isNamed ? 100 : 0) }
    })
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
  let text = ''
  for (const { tool } of ranked) {
    const left = most - frame.length - text.length
    const [whole, short] = [declareTool(tool), declareTool({ ...tool, input: undefined, output: undefined })]
    // One whose types alone are too long is still declared.
    if (whole.length <= left) text += whole
    else if (short.length <= left && text === '') text += short
  }
  return text === '' ? `No tool has these words. There are: ${listed(tools, most - 60)}.` : framed(text)
}

const frame = 'declare const tools: {\n}'
const framed = (declarations: string) => `declare const tools: {\n${declarations}}`

const has = (words: readonly string[], word: string) => words.some((each) => each.startsWith(word))

function wordsOf(text: string): string[] {
  const spread = text.slice(0, 2000).replaceAll(/([a-z])(?=[A-Z])/gu, '$1 ')
  return (
    spread
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
      ?.slice(0, 200) ?? []
  )
}

/** Undefined: they are more than `most` characters. */
function declareTools(tools: readonly DeclaredTool[], most: number): string | undefined {
  let text = ''
  for (const tool of tools) {
    text += declareTool(tool)
    if (text.length > most - frame.length) return undefined
  }
  return framed(text)
}

function declareTool({ name, description, input, output }: DeclaredTool): string {
  const [argument, isOptional] = argumentOf(input)
  const result = output === undefined ? 'any' : typeOf(output)
  const parameter = argument === undefined ? '' : `input${isOptional ? '?' : ''}: ${argument}`
  return `${comment(description, '  ', 1000)}  ${keyOf(name)}(${parameter}): Promise<${result}>\n`
}

/** Its type, and whether it may be left out. */
function argumentOf(schema: unknown): [type: string | undefined, isOptional: boolean] {
  if (schema === undefined) return ['any', true]
  if (!isObject(schema)) return [typeOf(schema), false]
  const properties = ownValue(schema, 'properties')
  const isEmpty = !isObject(properties) || Object.keys(properties).length === 0
  if (ownValue(schema, 'type') === 'object' && isEmpty && ownValue(schema, 'additionalProperties') === false)
    return [undefined, true]
  const required = ownValue(schema, 'required')
  return [typeOf(schema), ownValue(schema, 'type') === 'object' && !(Array.isArray(required) && required.length > 0)]
}

function nameTools(tools: readonly DeclaredTool[], most: number): string {
  const head = `There are too many tools to declare here: get the declarations of those that you need by \`describe(words)\`.\nNames: `
  const tail = '\n*/\ndeclare const tools: Record<string, (input?: any) => Promise<any>>'
  return `/* ${head}${listed(tools, most - head.length - tail.length - 10)}${tail}`
}

function listed(tools: readonly DeclaredTool[], most: number): string {
  let text = ''
  for (const [index, { name }] of tools.entries()) {
    const next = `${index === 0 ? '' : ', '}${oneLine(name, 100)}`
    if (text.length + next.length > most - 30) return `${text} and ${tools.length - index} more`
    text += next
  }
  return text === '' ? 'none' : text
}

function scope(input: unknown, most: number): string {
  const type = typeOf(input ?? true, '')
  // The input is the step's own, so it is no reason to leave out the tools.
  const declared = input === false ? '' : `declare const input: ${type.length > most / 4 ? 'any' : type}\n`
  return `${declared}/** Asks a person and waits, for days if need be. \`schema\`: JSON Schema of the answer; without, yes or no. */
declare function ask(message: string, schema?: object): Promise<any>
/** The declarations of the tools that fit the words. */
declare function describe(words: string): Promise<string>
declare const console: Record<'log' | 'info' | 'warn' | 'error' | 'debug', (...values: unknown[]) => void>
`
}

/* JSON Schema → a TypeScript type. */

interface Walk {
  root: unknown
  /** References that are being resolved: one inside of itself is `any`. */
  above: string[]
  /** Schemas that may still be visited: references can multiply. */
  left: number
}

function typeOf(schema: unknown, indent = '  '): string {
  return typeAt(schema, indent, { root: schema, above: [], left: 2000 })
}

function typeAt(schema: unknown, indent: string, walk: Walk): string {
  if (!isObject(schema) || walk.left-- <= 0 || indent.length > 30) return schema === false ? 'never' : 'any'
  const reference = ownValue(schema, '$ref')
  if (typeof reference === 'string') return referred(reference, indent, walk)
  const values = Object.hasOwn(schema, 'const') ? [schema['const']] : ownValue(schema, 'enum')
  if (Array.isArray(values)) return literals(values)
  const choices = ownValue(schema, 'anyOf') ?? ownValue(schema, 'oneOf')
  if (Array.isArray(choices)) return union(choices.map((each) => typeAt(each, indent, walk)))
  const parts = ownValue(schema, 'allOf')
  if (Array.isArray(parts)) {
    const { allOf: _, ...rest } = schema
    const all = [...parts, ...(Object.hasOwn(rest, 'type') || Object.hasOwn(rest, 'properties') ? [rest] : [])]
    return union(
      all.map((each) => enclosed(typeAt(each, indent, walk))),
      ' & ',
    )
  }
  const type = ownValue(schema, 'type') ?? (Object.hasOwn(schema, 'properties') ? 'object' : undefined)
  const types: unknown[] = Array.isArray(type) ? type : [type]
  const all = types.map((each) => simple(each, schema, indent, walk))
  return union(ownValue(schema, 'nullable') === true ? [...all, 'null'] : all)
}

function simple(type: unknown, schema: Record<string, unknown>, indent: string, walk: Walk): string {
  switch (type) {
    case 'string':
    case 'boolean':
    case 'number':
    case 'null':
      return type
    case 'integer':
      return 'number'
    case 'array':
      return listOf(schema, indent, walk)
    case 'object':
      return objectOf(schema, indent, walk)
    default:
      return 'any'
  }
}

function listOf(schema: Record<string, unknown>, indent: string, walk: Walk): string {
  const items = ownValue(schema, 'items')
  const first = ownValue(schema, 'prefixItems') ?? (Array.isArray(items) ? items : undefined)
  if (!Array.isArray(first)) return `${enclosed(typeAt(items, indent, walk))}[]`
  // Elements may be missing, and others may follow.
  const rest = Array.isArray(items) ? ownValue(schema, 'additionalItems') : items
  const types = first.map((each) => `${enclosed(typeAt(each, indent, walk))}?`)
  return `[${[...types, ...(rest === false ? [] : [`...${enclosed(typeAt(rest, indent, walk))}[]`])].join(', ')}]`
}

function objectOf(schema: Record<string, unknown>, indent: string, walk: Walk): string {
  const properties = ownValue(schema, 'properties')
  const more = ownValue(schema, 'additionalProperties')
  const names = isObject(properties) ? Object.keys(properties) : []
  if (names.length === 0)
    return more === false
      ? 'Record<string, never>'
      : `Record<string, ${isObject(more) ? typeAt(more, indent, walk) : 'any'}>`
  const required = ownValue(schema, 'required')
  const isRequired = (name: string) => Array.isArray(required) && required.includes(name)
  const inner = `${indent}  `
  const lines = names.map((name) => {
    const property = ownValue(properties as Record<string, unknown>, name)
    const note = isObject(property) ? comment(noteOf(property), inner, 300) : ''
    return `${note}${inner}${keyOf(name)}${isRequired(name) ? '' : '?'}: ${typeAt(property, inner, walk)}\n`
  })
  if (more === true || isObject(more)) lines.push(`${inner}[key: string]: any\n`)
  return `{\n${lines.join('')}${indent}}`
}

/** What a type cannot say. */
function noteOf(schema: Record<string, unknown>): string | undefined {
  const description = ownValue(schema, 'description')
  const facts = ['format', 'pattern', 'minimum', 'maximum', 'minItems', 'maxItems', 'minLength', 'maxLength', 'default']
    .filter((key) => Object.hasOwn(schema, key))
    .map((key) => `${key} ${oneLine(JSON.stringify(ownValue(schema, key)) ?? '', 60)}`)
  const text = [typeof description === 'string' ? description : '', facts.length > 0 ? `(${facts.join(', ')})` : '']
  return text.filter(Boolean).join(' ') || undefined
}

function referred(reference: string, indent: string, walk: Walk): string {
  if (walk.above.includes(reference)) return 'any'
  let target = walk.root
  if (reference !== '#' && !reference.startsWith('#/')) return 'any'
  for (const step of reference.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    target = isObject(target) ? ownValue(target, key) : undefined
  }
  walk.above.push(reference)
  const type = typeAt(target, indent, walk)
  walk.above.pop()
  return type
}

function literals(values: unknown[]): string {
  const types = values.map((value) =>
    isObject(value) || Array.isArray(value) ? 'any' : (JSON.stringify(value) ?? 'any'),
  )
  if (types.length <= 60) return union(types)
  return union(
    values.map((value) => (value === null ? 'null' : isObject(value) || Array.isArray(value) ? 'any' : typeof value)),
  )
}

function union(types: string[], by = ' | '): string {
  const all = [...new Set(types)]
  if (all.includes('any') || all.length === 0) return 'any'
  return all.length === 1 ? all[0]! : all.join(by)
}

/** For use inside of a larger type. */
function enclosed(type: string): string {
  return /^(?:\w+|\{[^]*\}|"[^"]*")$/u.test(type) && !/^\{[^]*\} [|&] /u.test(type) ? type : `(${type})`
}

function keyOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/u.test(name) ? name : JSON.stringify(name)
}

function comment(text: string | undefined, indent: string, most: number): string {
  return text === undefined || text.trim() === '' ? '' : `${indent}/** ${oneLine(text, most)} */\n`
}

function oneLine(text: string, most: number): string {
  const line = escaped(
    text
      .slice(0, most * 2)
      .replaceAll(/\s+/gu, ' ')
      .trim(),
  )
  return line.length > most ? `${line.slice(0, most)}…` : line
}

/** A text cannot close a comment. */
const escaped = (text: string) => text.replaceAll('*/', '*∕')

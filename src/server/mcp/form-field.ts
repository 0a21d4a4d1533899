/** One plain value of JSON Schema as a field of an MCP form, which knows fewer keywords. The value is checked with the schema itself. */
import { ownValue } from '../../part/own-value.ts'
import { isOfType } from '../../pipeline/value-schema.ts'
import { isObject } from '../access/told-principal.ts'
import { shownLine, shownText } from '../../part/shown-text.ts'

/** A `PrimitiveSchemaDefinition` of MCP. */
export type FormField = Record<string, unknown> & { type: 'string' | 'number' | 'integer' | 'boolean' | 'array' }

const formats = new Set(['email', 'uri', 'date', 'date-time'])
/** Would allow more than a field of a form says, or other values. */
const notPlain = ['properties', '$ref', 'allOf', 'anyOf', 'not', 'if', 'const', 'patternProperties', 'prefixItems']
const mostChoices = 200

/** Undefined: a form has no field for it. */
export function toFormField(schema: Record<string, unknown>): FormField | undefined {
  if (notPlain.some((keyword) => Object.hasOwn(schema, keyword))) return undefined
  const type = ownValue(schema, 'type') ?? (isTexts(ownValue(schema, 'enum')) ? 'string' : undefined)
  const about = { ...texts(schema), ...defaultOf(schema) }
  if (type === 'boolean') return Object.hasOwn(schema, 'enum') ? undefined : { type, ...about }
  if (type === 'number' || type === 'integer') {
    return Object.hasOwn(schema, 'enum') ? undefined : { type, ...about, ...kept(schema, ['minimum', 'maximum']) }
  }
  if (type === 'array') return manyOf(schema, about)
  if (type !== 'string') return undefined
  const choices = choicesOf(schema)
  if (choices === 'none') return undefined
  if (choices !== undefined) return { type, ...about, ...choices }
  const format = ownValue(schema, 'format')
  const isFormat = typeof format === 'string' && formats.has(format)
  return { type, ...about, ...kept(schema, ['minLength', 'maxLength']), ...(isFormat && { format }) }
}

/** Several of some texts. */
function manyOf(schema: Record<string, unknown>, about: object): FormField | undefined {
  const items = ownValue(schema, 'items')
  const bounds = kept(schema, ['minItems', 'maxItems'])
  if (!isObject(items)) return undefined
  const isOnly = (...keys: string[]) => Object.keys(items).every((key) => keys.includes(key))
  const values = ownValue(items, 'enum')
  if (isTexts(values) && isOnly('enum', 'type'))
    return { type: 'array', ...about, ...bounds, items: { type: 'string', enum: values } }
  const anyOf = titledIn(ownValue(items, 'anyOf'))
  return anyOf !== undefined && isOnly('anyOf', 'type')
    ? { type: 'array', ...about, ...bounds, items: { anyOf } }
    : undefined
}

/** Undefined: any text. `none`: choices that a form cannot show. */
function choicesOf(schema: Record<string, unknown>): object | 'none' | undefined {
  const [values, titled] = [ownValue(schema, 'enum'), ownValue(schema, 'oneOf')]
  if (values !== undefined) return isTexts(values) ? { enum: values, ...namesOf(values, schema) } : 'none'
  if (titled === undefined) return undefined
  const oneOf = titledIn(titled)
  return oneOf === undefined ? 'none' : { oneOf }
}

/** `enumNames`, as older clients have it. */
function namesOf(values: readonly string[], schema: Record<string, unknown>): object {
  const names = ownValue(schema, 'enumNames')
  const isUsable =
    Array.isArray(names) && names.length === values.length && names.every((name) => typeof name === 'string')
  return isUsable ? { enumNames: names.map((name) => shownLine(name, 200)) } : {}
}

/** Choices with a title each. */
function titledIn(forms: unknown): { const: string; title: string }[] | undefined {
  if (!Array.isArray(forms) || forms.length === 0 || forms.length > mostChoices) return undefined
  const choices = forms.flatMap((each: unknown) => {
    const value = isObject(each) ? ownValue(each, 'const') : undefined
    const title = isObject(each) ? ownValue(each, 'title') : undefined
    if (typeof value !== 'string' || !isTexts([value])) return []
    return [{ const: value, title: typeof title === 'string' ? shownLine(title, 200) : value }]
  })
  return choices.length === forms.length ? choices : undefined
}

/** Values that a person can tell apart. */
function isTexts(values: unknown): values is string[] {
  if (!Array.isArray(values) || values.length === 0 || values.length > mostChoices) return false
  return values.every((value) => typeof value === 'string' && shownText(value) === value)
}

function texts(schema: Record<string, unknown>): object {
  const [title, about, pattern] = ['title', 'description', 'pattern'].map((key) => ownValue(schema, key))
  // No keyword of a form: a person would not know why the value is asked for again.
  const rule = typeof pattern === 'string' ? `Must match ${pattern}` : undefined
  const description = [about, rule].filter((text) => typeof text === 'string').join(' ')
  return {
    ...(typeof title === 'string' && { title: shownLine(title, 200) }),
    ...(description !== '' && { description: shownText(description, 1000) }),
  }
}

function defaultOf(schema: Record<string, unknown>): object {
  const value = ownValue(schema, 'default')
  const isUsable = typeof value === 'number' || typeof value === 'boolean' || isTexts([value].flat())
  return isUsable && isOfType(value, ownValue(schema, 'type')) ? { default: value } : {}
}

function kept(schema: Record<string, unknown>, keywords: readonly string[]): object {
  return Object.fromEntries(
    keywords.filter((key) => Object.hasOwn(schema, key)).map((key) => [key, ownValue(schema, key)]),
  )
}

/** The data of an event as a value, or the error that the AI SDK's packages report for it: their `safeParseJSON`, without a promise. */
import { JSONParseError, TypeValidationError } from '@ai-sdk/provider'
import { secureJsonParse } from '@ai-sdk/provider-utils'

/** What zod's `safeParse` returns. */
export type Checked<T> = { success: true; data: T } | { success: false; error: unknown }

export type Chunk<T> =
  | { value: T; error?: undefined }
  /** What the package rejects. A `TypeValidationError` has the value as it was parsed. */
  | { value?: undefined; error: JSONParseError | TypeValidationError }

export function readJson<T>(text: string, check: (value: unknown) => Checked<T>): Chunk<T> {
  try {
    return validated(parse(text), check)
  } catch (cause) {
    // Also if the message about a rejected value is too deep for the stack.
    return { error: new JSONParseError({ text, cause }) }
  }
}

/** The package looks at each text for two members, however they are escaped. Nearly no text has the words, or escapes a letter. */
function parse(text: string): unknown {
  const mayHaveThem = text.includes('__proto__') || text.includes('constructor') || text.includes('\\u')
  return mayHaveThem ? secureJsonParse(text) : JSON.parse(text)
}

function validated<T>(value: unknown, check: (value: unknown) => Checked<T>): Chunk<T> {
  let cause: unknown
  try {
    const checked = check(value)
    if (checked.success) return { value: checked.data }
    cause = checked.error
  } catch (error) {
    cause = error
  }
  return { error: TypeValidationError.wrap({ value, cause }) }
}

/** What the schemas call an object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Null and missing are the same to the packages. */
export function isTextOrNone(value: unknown): value is string | null | undefined {
  return typeof value === 'string' || value === null || value === undefined
}

/** `1e999` is infinite in JavaScript, and the schemas reject that. */
export function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

export function isNumberOrNone(value: unknown): value is number | null | undefined {
  return value === null || value === undefined || isNumber(value)
}

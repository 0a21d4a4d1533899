/** The data of an event as a value, or the error that the AI SDK's packages report for it. */
import { JSONParseError, TypeValidationError } from '@ai-sdk/provider'
import { secureJsonParse } from '@ai-sdk/provider-utils'
import { safeParse, type ZodType } from 'zod/v4'

export interface Chunk<T> {
  /** Undefined if the package rejects the chunk. */
  value: T | undefined
  error: JSONParseError | TypeValidationError | undefined
  /** As parsed, for `raw` parts. */
  raw: unknown
}

/**
 * `isUsual` accepts the chunks of most streams, without a schema: what it accepts, the package's schema must accept without changing
 * anything that the decoder reads. All others go through the schema.
 */
export function readChunk<T>(data: string, isUsual: (raw: unknown) => raw is T, schema: () => ZodType<T>): Chunk<T> {
  let raw: unknown
  try {
    raw = secureJsonParse(data)
  } catch (cause) {
    return { value: undefined, error: new JSONParseError({ text: data, cause }), raw: undefined }
  }
  if (isUsual(raw)) return { value: raw, error: undefined, raw }
  const result = safeParse(schema(), raw)
  if (result.success) return { value: result.data, error: undefined, raw }
  return { value: undefined, error: TypeValidationError.wrap({ value: raw, cause: result.error }), raw }
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

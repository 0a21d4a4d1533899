/** JSON texts, parsed and checked as the AI SDK's `safeParseJSON` does it, but at once instead of behind a promise. */
import { JSONParseError, TypeValidationError } from '@ai-sdk/provider'
import { secureJsonParse } from '@ai-sdk/provider-utils'

/** What zod's `safeParse` returns. */
export type Checked<T> = { success: true; data: T } | { success: false; error: unknown }

export type ReadChunk<T> = { value: T; raw: unknown } | { error: Error; raw: unknown }

export function readChunk<T>(text: string, check: (value: unknown) => Checked<T>): ReadChunk<T> {
  let raw: unknown
  try {
    raw = secureJsonParse(text)
  } catch (cause) {
    return { error: new JSONParseError({ text, cause }), raw: undefined }
  }
  let cause: unknown
  try {
    const checked = check(raw)
    if (checked.success) return { value: checked.data, raw }
    cause = checked.error
  } catch (error) {
    cause = error
  }
  return { error: TypeValidationError.wrap({ value: raw, cause }), raw }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

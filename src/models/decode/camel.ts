/** Fields as the AI SDK names them. */
import { fieldsOf, isFields, type Fields } from './fields.ts'

/** `retrieved_at` → `retrievedAt`, in all that a value holds. */
export function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased)
  if (!isFields(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [camel(key), camelCased(field)]))
}

function camel(key: string): string {
  return key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

export function withoutNulls(value: unknown, also?: unknown): Fields {
  const entries = Object.entries(fieldsOf(value) ?? {})
  return Object.fromEntries(entries.filter(([, field]) => (field ?? null) !== null && field !== also))
}

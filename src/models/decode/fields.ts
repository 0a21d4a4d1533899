/** Accessors for untrusted JSON. */
import { recordable } from '../../part/json.ts'

export type Fields = Record<string, unknown>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function fieldsOf(value: unknown): Fields | undefined {
  return isFields(value) ? value : undefined
}

const none: Fields[] = []

/** The objects of a list; a single object counts as a list of one. */
export function listOf(value: unknown): Fields[] {
  if (Array.isArray(value)) return value.every(isFields) ? value : value.filter(isFields)
  return isFields(value) ? [value] : none
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** Arguments of a call: some servers send them as a value. */
export function argumentsOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : (JSON.stringify(recordable(value)) ?? '')
}

/** `retrieved_at` → `retrievedAt`, as in the AI SDK. */
export function camel(name: string): string {
  return name.replaceAll(/[_-]([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** Converts all keys of a value, deeply. */
export function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased)
  if (!isFields(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [camel(key), camelCased(field)]))
}

export function withoutNulls(value: unknown, also?: unknown): Fields {
  const entries = Object.entries(fieldsOf(value) ?? {})
  return Object.fromEntries(entries.filter(([, field]) => (field ?? null) !== null && field !== also))
}

/** Converts its own keys to the AI SDK's form, without nulls: deeper keys may be the user's. */
export function named(value: unknown): Fields {
  const entries = Object.entries(withoutNulls(value))
  return Object.fromEntries(entries.map(([key, field]) => [camel(key), field]))
}

/** The fields with these names, in order. */
export function picked(value: unknown, ...names: string[]): Fields {
  const fields = fieldsOf(value) ?? {}
  return named(Object.fromEntries(names.map((name) => [name, fields[name]])))
}

/** JSON, or undefined. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

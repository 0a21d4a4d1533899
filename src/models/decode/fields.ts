/** JSON of which nothing is known: each asks for what it can use. */
import { recordable } from '../../part/json.ts'

export type Fields = Record<string, unknown>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function fieldsOf(value: unknown): Fields | undefined {
  return isFields(value) ? value : undefined
}

const none: Fields[] = []

/** The objects of a list; one that stands in place of a list is one of its own. */
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

/** JSON, or undefined. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

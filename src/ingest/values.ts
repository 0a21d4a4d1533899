/** Reads values that come from outside, whatever they are. */
import type { ModelPart } from '../part/model-part.ts'
import { parseJson } from '../part/json.ts'

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value as an object; an empty one for anything else. */
export function objectOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** The objects of a list; none for anything else. */
export function objectsOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** Arguments and results of tools, as parts have them. */
type ToolResultValue = Extract<ModelPart, { type: 'tool-result' }>['result']

/** Results are JSON, but never nothing. */
export function toResultValue(value: unknown): ToolResultValue {
  return (value ?? '') as ToolResultValue
}

export function isValidJson(text: string): boolean {
  try {
    parseJson(text)
    return true
  } catch {
    return false
  }
}

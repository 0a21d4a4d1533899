/** Arguments and results of tools, as parts have them. */
import type { ModelPart } from '../part/model-part.ts'
import { parseJson } from '../part/json.ts'

export type ToolResultValue = Extract<ModelPart, { type: 'tool-result' }>['result']

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

import { parseJson } from '../part/json.ts'
import { isObject } from './values.ts'

/** The event of a line; undefined for a line that is no JSON object, or nested too deep. */
export function toEvent(text: string): Record<string, unknown> | undefined {
  // Most lines that are no event are no JSON either: banners, and the output of tools.
  if (!/^\s*\{/u.test(text)) return undefined
  try {
    const value = parseJson(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

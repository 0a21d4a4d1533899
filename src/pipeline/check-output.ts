/** Checks the value of an agent against its `output`. */
import { MillraceError } from '../part/error.ts'
import { readJson } from '../part/json.ts'
import { checkValue, firstFaults } from './check-input.ts'
import type { ValueSchema } from './value-schema.ts'

/** Returns the value with defaults filled in; of a text that should be a map or a list, its JSON. Throws `bad-output` with the path of every fault, at most 20. */
export function checkOutput(schema: ValueSchema, value: unknown): unknown {
  const { value: filled, faults } = checkValue(schema, isJson(schema, value) ? jsonIn(value) : value, 'the value')
  if (faults.length === 0) return filled
  throw new MillraceError('bad-output', `The value of the agent does not match its "output": ${firstFaults(faults)}.`)
}

function isJson({ type }: ValueSchema, value: unknown): value is string {
  return typeof value === 'string' && (type === 'object' || type === 'array')
}

/** The text itself if it has no JSON: then the fault names its type. */
function jsonIn(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return text
  }
}

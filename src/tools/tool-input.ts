/** Tools as models see them: their specification, and the check of the arguments that a model writes. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { messageOf, MillraceError } from '../part/error.ts'
import { isRecordable, parseJson } from '../part/json.ts'
import type { ToolSpec } from '../part/message.ts'
import { toSchema } from '../models/model.ts'
import { validate } from '../pipeline/json-schema/validate.ts'
import type { ToolImplementation } from './tool.ts'

/** A tool's specification for models. Throws `invalid-tool` if its schema cannot be expressed as JSON Schema. */
export async function toToolSpec(
  name: string,
  implementation: ToolImplementation,
  description = implementation.description,
): Promise<ToolSpec> {
  try {
    const schema = await toSchema(implementation.parameters)
    const inputSchema = (await schema.jsonSchema) as ToolSpec['inputSchema']
    if (!isRecordable(inputSchema)) throw new Error('it is nested too deeply or is not JSON')
    return omitUndefined({ name, description, inputSchema })
  } catch (error) {
    throw new MillraceError(
      'invalid-tool',
      `The parameters of tool "${name}" cannot be expressed as JSON Schema: ${messageOf(error)}. Use an object schema.`,
      { cause: error },
    )
  }
}

export type ParsedInput = { ok: true; value: unknown } | { ok: false; error: string }

/**
 * Converts a model's arguments into the input of `execute`: parses them as JSON (an empty text is `{}`) and validates them with
 * the tool's schema. Never throws. The model receives `error` as the call's result.
 */
export async function parseToolInput(implementation: ToolImplementation, text: string): Promise<ParsedInput> {
  let input: unknown
  try {
    input = text.trim() === '' ? {} : parseJson(text, refusePrototype)
  } catch (error) {
    return { ok: false, error: `The arguments are not valid JSON: ${messageOf(error)}` }
  }
  try {
    const schema = await toSchema(implementation.parameters)
    if (schema.validate === undefined) {
      // The SDK's `jsonSchema()` has no validation.
      const faults = validate(await schema.jsonSchema, input)
      return faults.length === 0 ? { ok: true, value: input } : { ok: false, error: misfit(faults.join('; ')) }
    }
    const result = await schema.validate(input)
    if (result.success) return { ok: true, value: result.value }
    return { ok: false, error: misfit(issuesOf(result.error)) }
  } catch (error) {
    return { ok: false, error: `The arguments could not be checked: ${messageOf(error)}` }
  }
}

function misfit(why: string): string {
  return `The arguments do not match the tool's schema: ${why}`
}

/** Formats a Standard Schema's issues, wherever the SDK nests them: `city: expected string, received number; …`. */
function issuesOf(error: unknown): string {
  for (let at = error; typeof at === 'object' && at !== null; at = (at as { cause?: unknown }).cause) {
    const issues = Array.isArray(at) ? at : (at as { issues?: unknown }).issues
    if (Array.isArray(issues)) return issues.map(issueText).join('; ')
  }
  return messageOf(error)
}

function issueText({
  message,
  path,
}: {
  message: string
  path?: readonly (PropertyKey | { key: PropertyKey })[]
}): string {
  const at = (path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)).join('.')
  return at === '' ? message : `${at}: ${message}`
}

function refusePrototype(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new SyntaxError('the key "__proto__" is not allowed')
  return value
}

/** Checks `tools`, `tool_choice` and `response_format` of an OpenAI request. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { CallSettings } from '../../part/part.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { toFields } from './parameters.ts'

type Fields = Record<string, unknown>

const maxTools = 128

/** Checks the functions and returns their names. The pipeline gets them as the client sent them. */
export function readTools(value: unknown, name: string): string[] {
  if (!Array.isArray(value)) throw new BadParameter(name, 'must be an array of {type: "function", function: {…}}.')
  if (value.length > maxTools)
    throw new BadParameter(name, `has ${value.length} entries; at most ${maxTools} are allowed.`)
  const names = new Set<string>()
  for (const [i, item] of value.entries()) {
    const place = `${name}[${i}]`
    const tool = toFields(item, place)
    if (tool['type'] !== 'function') throw new BadParameter(`${place}.type`, 'must be "function".')
    const made = toFields(tool['function'], `${place}.function`)
    const called = made['name']
    if (typeof called !== 'string' || !/^[\w-]{1,64}$/u.test(called)) {
      throw new BadParameter(`${place}.function.name`, 'must be 1 to 64 letters, digits, _ or -.')
    }
    if (names.has(called))
      throw new BadParameter(`${place}.function.name`, `is "${called}", which is used more than once.`)
    names.add(called)
    const { description, parameters, strict } = made
    if (description != null && typeof description !== 'string') {
      throw new BadParameter(`${place}.function.description`, 'must be a string.')
    }
    if (strict != null && typeof strict !== 'boolean') {
      throw new BadParameter(`${place}.function.strict`, 'must be true or false.')
    }
    if (parameters != null) toFields(parameters, `${place}.function.parameters`)
  }
  return [...names]
}

const choices = ['none', 'auto', 'required'] as const

export const choiceForm = 'must be none, auto, required or {type: "function", function: {name}}.'

export function isChoice(value: unknown): boolean {
  return choices.some((each) => each === value) || namedTool(value) !== undefined
}

function namedTool(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { type, function: named } = value as Fields
  const tool = type === 'function' ? (named as Fields | null | undefined)?.['name'] : undefined
  return typeof tool === 'string' ? tool : undefined
}

/** `tools`: the available names. Only for a value that is a choice. */
export function readChoice(
  value: unknown,
  name: string,
  tools: readonly string[],
): NonNullable<CallSettings['toolChoice']> {
  const word = choices.find((each) => each === value)
  // With only the agent's own tools, a model that must call a tool could never answer.
  if (word === 'required' && tools.length === 0)
    throw new BadParameter(name, 'is "required", but there are no tools in the request.')
  if (word !== undefined) return word
  const tool = namedTool(value)
  if (tool === undefined) throw new BadParameter(name, choiceForm)
  if (!tools.includes(tool)) {
    throw new BadParameter(`${name}.function.name`, `is "${tool.slice(0, 64)}", which is not among the tools.`)
  }
  return { tool }
}

export function readFormat(value: unknown, name: string): Pick<CallSettings, 'responseFormat' | 'providerOptions'> {
  const { type, json_schema: described } = toFields(value, name)
  if (type === 'text') return {}
  if (type === 'json_object') return { responseFormat: { type: 'json' } }
  if (type !== 'json_schema') throw new BadParameter(`${name}.type`, 'must be text, json_object or json_schema.')
  const place = `${name}.json_schema`
  const { name: called, description, schema, strict } = toFields(described, place)
  if (typeof called !== 'string' || called === '')
    throw new BadParameter(`${place}.name`, 'must be a non-empty string.')
  if (strict != null && typeof strict !== 'boolean') throw new BadParameter(`${place}.strict`, 'must be true or false.')
  const how = { strictJsonSchema: strict === true }
  return {
    responseFormat: omitUndefined({
      type: 'json' as const,
      name: called,
      schema: schema == null ? undefined : toFields(schema, `${place}.schema`),
      description: typeof description === 'string' ? description : undefined,
    }),
    // The provider packages default to strict mode, in which OpenAI refuses schemas that do not meet its extra rules.
    providerOptions: { openai: how, openaiCompatible: how },
  }
}

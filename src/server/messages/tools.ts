/** Checks `tools`, `tool_choice` and the format of a Messages request, and brings the tools into the form of `$input.tools`. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { CallSettings } from '../../part/part.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { toFields } from '../openai/parameters.ts'

type Fields = Record<string, unknown>

const maxTools = 512
const maxSchema = 64 * 1024
/** Claude Code's, which stands for the tools that it offers later. */
const placeholder = 'DeferredToolPlaceholder'

export interface RequestTools {
  /** As the model gets them. */
  tools: Fields[]
  /** Tools that are not offered, by their places. */
  ignored: string[]
}

/** `referenced`: tools that results name. A deferred tool is offered once it is among them. */
export function readTools(value: unknown, referenced: ReadonlySet<string>): RequestTools {
  if (!Array.isArray(value)) throw new BadParameter('tools', 'must be an array of {name, input_schema}.')
  if (value.length > maxTools) throw new BadParameter('tools', `has more than ${maxTools} tools.`)
  const tools: Fields[] = []
  const ignored: string[] = []
  const names = new Set<string>()
  for (const [i, item] of (value as unknown[]).entries()) {
    const place = `tools[${i}]`
    const tool = toFields(item, place)
    const { type, defer_loading: deferred } = tool
    if (type != null && type !== 'custom') {
      if (typeof type !== 'string') throw new BadParameter(`${place}.type`, 'must be a string.')
      ignored.push(`${place} (${type.slice(0, 60)})`)
      continue
    }
    const made = toTool(tool, place)
    const name = String(made['name'])
    if (names.has(name)) throw new BadParameter(`${place}.name`, `is "${name}", which is used more than once.`)
    names.add(name)
    if (deferred === true && (name === placeholder || !referenced.has(name))) continue
    tools.push(made)
  }
  return { tools, ignored: ignored.slice(0, 20) }
}

function toTool(tool: Fields, place: string): Fields {
  const { name, description, input_schema: schema, strict } = tool
  if (typeof name !== 'string' || !/^[\w-]{1,128}$/u.test(name)) {
    throw new BadParameter(`${place}.name`, 'must be 1 to 128 letters, digits, _ or -.')
  }
  if (description != null && typeof description !== 'string') {
    throw new BadParameter(`${place}.description`, 'must be a string.')
  }
  if (schema === undefined) throw new BadParameter(`${place}.input_schema`, 'is missing: a JSON Schema.')
  const parameters = toFields(schema, `${place}.input_schema`)
  if (JSON.stringify(parameters).length > maxSchema) {
    throw new BadParameter(`${place}.input_schema`, `has more than ${maxSchema} characters.`)
  }
  return omitUndefined({
    type: 'function',
    name,
    description: description ?? undefined,
    parameters,
    strict: typeof strict === 'boolean' ? strict : undefined,
  })
}

export interface RequestChoice {
  toolChoice: NonNullable<CallSettings['toolChoice']>
  /** At most one call at a time. */
  isSingle: boolean
}

/** `names`: of the tools. */
export function readChoice(value: unknown, names: readonly string[]): RequestChoice {
  const { type, name, disable_parallel_tool_use: single } = toFields(value, 'tool_choice')
  const isSingle = single === true
  switch (type) {
    case 'auto':
    case 'none':
      return { toolChoice: type, isSingle }
    case 'any':
      // With only the agent's own tools, a model that must call a tool could never answer.
      if (names.length === 0) throw new BadParameter('tool_choice', 'is "any", but there are no tools in the request.')
      return { toolChoice: 'required', isSingle }
    case 'tool':
      if (typeof name !== 'string') throw new BadParameter('tool_choice.name', 'must be the name of a tool.')
      if (!names.includes(name)) {
        throw new BadParameter('tool_choice.name', `is "${name.slice(0, 64)}", which is not among the tools.`)
      }
      return { toolChoice: { tool: name }, isSingle }
    default:
      throw new BadParameter('tool_choice.type', 'must be auto, any, tool or none.')
  }
}

/** `output_config.format`, formerly `output_format`. */
export function readFormat(value: unknown, place: string): CallSettings['responseFormat'] {
  const { type, schema } = toFields(value, place)
  if (type !== 'json_schema') throw new BadParameter(`${place}.type`, 'must be json_schema.')
  return { type: 'json', name: 'answer', schema: toFields(schema, `${place}.schema`) }
}

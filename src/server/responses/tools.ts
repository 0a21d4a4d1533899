/** Checks `tools`, `tool_choice` and `text.format` of a Responses request, and brings the tools into the form of `$input.tools`. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { CallSettings } from '../../part/part.ts'
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { modelToolName } from '../../wire/responses/tool-names.ts'
import { UnsupportedParameter } from './error.ts'
import { toFields } from '../openai/parameters.ts'

type Fields = Record<string, unknown>

/** Functions of namespaces count each. */
const maxTools = 512
const maxSchema = 64 * 1024

export interface RequestTools {
  /** As the model gets them. */
  tools: Fields[]
  /** Tools that are not offered, by their places. */
  ignored: string[]
  /** Agents that stand as MCP servers: the client takes requests for approval of their calls. */
  approvals: string[]
}

/** `isAgent`: whether an agent has this id. */
export function readTools(value: unknown, isAgent: (id: string) => boolean): RequestTools {
  if (!Array.isArray(value))
    throw new BadParameter('tools', 'must be an array of {type: "function", name, parameters}.')
  const tools: Fields[] = []
  const ignored: string[] = []
  const approvals = new Set<string>()
  const names = new Set<string>()
  const add = (tool: Fields, place: string, namespace?: string) => {
    const made = toTool(tool, place, namespace)
    const name = String(made['name'])
    if (names.has(name)) throw new BadParameter(`${place}.name`, `is "${name}", which is used more than once.`)
    names.add(name)
    tools.push(made)
    if (tools.length > maxTools) throw new BadParameter('tools', `has more than ${maxTools} tools.`)
  }
  for (const [i, item] of (value as unknown[]).entries()) {
    const place = `tools[${i}]`
    const tool = toFields(item, place)
    const { type } = tool
    if (type === 'function' || type === 'custom') add(tool, place)
    else if (type === 'namespace') {
      const namespace = toName(tool['name'], `${place}.name`)
      if (!Array.isArray(tool['tools'])) throw new BadParameter(`${place}.tools`, 'must be an array of functions.')
      for (const [n, inner] of (tool['tools'] as unknown[]).entries()) {
        const at = `${place}.tools[${n}]`
        add(toFields(inner, at), at, namespace)
      }
    } else if (type === 'mcp' && typeof tool['server_label'] === 'string' && isAgent(tool['server_label'])) {
      approvals.add(tool['server_label'])
    } else if (typeof type === 'string') ignored.push(`${place} (${type.slice(0, 60)})`)
    else throw new BadParameter(`${place}.type`, 'is missing.')
  }
  return { tools, ignored: ignored.slice(0, 20), approvals: [...approvals] }
}

function toTool(tool: Fields, place: string, namespace: string | undefined): Fields {
  const { description, parameters, strict, format, type } = tool
  const name = modelToolName(toName(tool['name'], `${place}.name`), namespace)
  if (description != null && typeof description !== 'string') {
    throw new BadParameter(`${place}.description`, 'must be a string.')
  }
  const isText = type === 'custom'
  const schema = isText ? textInput : parameters == null ? undefined : toFields(parameters, `${place}.parameters`)
  if (JSON.stringify(schema ?? {}).length > maxSchema) {
    throw new BadParameter(`${place}.parameters`, `has more than ${maxSchema} characters.`)
  }
  return omitUndefined({
    type: isText ? 'custom' : 'function',
    name,
    namespace,
    description: isText ? textDescription(description ?? undefined, format) : (description ?? undefined),
    parameters: schema,
    strict: typeof strict === 'boolean' ? strict : undefined,
  })
}

/** Models call functions alone. */
const textInput = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The whole input of the tool.' } },
  required: ['input'],
  additionalProperties: false,
}

function textDescription(description: string | undefined, format: unknown): string | undefined {
  const { type, syntax, definition } = (format ?? {}) as Fields
  if (type !== 'grammar' || typeof definition !== 'string') return description
  const grammar = `The input must match this grammar (${String(syntax).slice(0, 40)}):\n${definition}`
  return description === undefined ? grammar : `${description}\n\n${grammar}`
}

const words = ['none', 'auto', 'required'] as const

const choiceForm =
  'must be none, auto, required, {type: "function", name}, {type: "custom", name} or {type: "allowed_tools", mode, tools}.'

export interface RequestChoice {
  toolChoice: NonNullable<CallSettings['toolChoice']>
  /** The tools that remain, if the choice is among some of them. */
  allowed?: ReadonlySet<string>
}

/** `names`: of the tools, as the model knows them. */
export function readChoice(value: unknown, names: readonly string[]): RequestChoice {
  const word = words.find((each) => each === value)
  // With only the agent's own tools, a model that must call a tool could never answer.
  if (word === 'required' && names.length === 0)
    throw new BadParameter('tool_choice', 'is "required", but there are no tools in the request.')
  if (word !== undefined) return { toolChoice: word }
  if (typeof value !== 'object' || value === null) throw new BadParameter('tool_choice', choiceForm)
  const choice = value as Fields
  switch (choice['type']) {
    case 'function':
    case 'custom':
      return { toolChoice: { tool: among(choice, 'tool_choice', names) } }
    case 'allowed_tools': {
      const { mode, tools } = choice
      if (mode !== 'auto' && mode !== 'required')
        throw new BadParameter('tool_choice.mode', 'must be auto or required.')
      if (!Array.isArray(tools) || tools.length === 0)
        throw new BadParameter('tool_choice.tools', 'must be a list of tools that has at least one.')
      const allowed = (tools as unknown[]).flatMap((tool, i): string[] => {
        const place = `tool_choice.tools[${i}]`
        const fields = toFields(tool, place)
        return fields['type'] === 'function' || fields['type'] === 'custom' ? [among(fields, place, names)] : []
      })
      return { toolChoice: mode, allowed: new Set(allowed) }
    }
    default:
      if (typeof choice['type'] !== 'string') throw new BadParameter('tool_choice', choiceForm)
      throw new UnsupportedParameter(
        'tool_choice',
        `forces ${choice['type'].slice(0, 60)}, which this server does not have. Give the agent a tool instead.`,
      )
  }
}

function among(choice: Fields, place: string, names: readonly string[]): string {
  const name = modelToolName(toName(choice['name'], `${place}.name`), choice['namespace'])
  if (names.includes(name)) return name
  throw new BadParameter(`${place}.name`, `is "${name.slice(0, 64)}", which is not among the tools.`)
}

export function readFormat(value: unknown): Pick<CallSettings, 'responseFormat' | 'providerOptions'> {
  const place = 'text.format'
  const { type, name, description, schema, strict } = toFields(value, place)
  if (type === 'text') return {}
  if (type === 'json_object') return { responseFormat: { type: 'json' } }
  if (type !== 'json_schema') throw new BadParameter(`${place}.type`, 'must be text, json_object or json_schema.')
  if (typeof name !== 'string' || name === '') throw new BadParameter(`${place}.name`, 'must be a non-empty string.')
  const how = { strictJsonSchema: strict === true }
  return {
    responseFormat: omitUndefined({
      type: 'json' as const,
      name,
      schema: schema == null ? undefined : toFields(schema, `${place}.schema`),
      description: typeof description === 'string' ? description : undefined,
    }),
    // The provider packages default to strict mode, in which OpenAI refuses schemas that do not meet its extra rules.
    providerOptions: { openai: how, openaiCompatible: how },
  }
}

function toName(value: unknown, place: string): string {
  if (typeof value === 'string' && /^[\w-]{1,128}$/u.test(value)) return value
  throw new BadParameter(place, 'must be 1 to 128 letters, digits, _ or -.')
}

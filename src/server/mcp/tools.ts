/** The agents that a caller may use, as tools of MCP. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import type { ValueSchema } from '../../pipeline/value-schema.ts'
import { checkValue, firstFaults } from '../../pipeline/check-input.ts'
import { listedAgents } from '../../runtime/runtime-errors.ts'
import type { Agent, AgentSource } from '../../runtime/runtime.ts'
import { toOutputSchema, type Era } from './content.ts'
import { isObject } from './json-rpc.ts'

export interface McpTool {
  name: string
  title?: string
  description?: string
  inputSchema: ValueSchema
  outputSchema?: Record<string, unknown>
}

/** Which agents a URL offers. */
export interface ToolScope {
  /** `/mcp/<agent>`: that one, even if it is hidden. */
  only?: string | undefined
  /** `server.mcp.agents`. Absent: all that are not hidden. */
  agents?: readonly string[] | undefined
}

/** Sorted by id. */
export function agentsIn(agents: AgentSource, { only, agents: chosen }: ToolScope): Agent[] {
  const found = only === undefined ? listed(agents, chosen) : [agents.get(only)].filter((each) => each !== undefined)
  return found.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function listed(agents: AgentSource, chosen: readonly string[] | undefined): Agent[] {
  if (chosen === undefined) return listedAgents(agents)
  const found = chosen.map((name) => agents.get(name)).filter((each) => each !== undefined)
  return [...new Map(found.map((agent) => [agent.id, agent])).values()]
}

const longestDescription = 4000

export function toTool({ id, pipeline }: Agent, era: Era): McpTool {
  const { name, description } = pipeline.metadata
  const output = outputOf(pipeline)
  return omitUndefined({
    name: id,
    title: name,
    description: description && shownText(description),
    inputSchema: inputSchemaOf(pipeline),
    outputSchema: output && toOutputSchema(output as Record<string, unknown>, era),
  })
}

function shownText(text: string): string {
  // Line breaks and tabs stay.
  return text.replaceAll(/(?![\n\t])[\p{Cc}\p{Cf}]/gu, '').slice(0, longestDescription)
}

/** The schema of the agent's value, if its file has one. */
export function outputOf(pipeline: Pipeline): ValueSchema | undefined {
  return (pipeline as Pipeline & { output?: ValueSchema }).output
}

const asMessage: ValueSchema = { type: 'string', minLength: 1, description: 'The message to the agent.' }
const asThread: ValueSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 256,
  description: 'Continues this conversation. Take it from an earlier result. Without it a new one begins.',
}

/** Keys of a run's input that are no parameters: see `check-run-input.ts`. */
const reserved = ['messages', 'tools', 'state', 'context', 'forwardedProps']

/** The agent's `input` without the conversation, and `message`, which is required if nothing else is. */
export function inputSchemaOf(pipeline: Pipeline): ValueSchema {
  const { properties: all = {}, required: given = [], additionalProperties, ...rest } = pipeline.input ?? {}
  const own = Object.entries(all).filter(([key]) => key !== 'messages')
  const required = given.filter((key) => key !== 'messages')
  const names = new Set(own.map(([key]) => key))
  const isTold = !names.has('message')
  return omitUndefined({
    ...rest,
    type: 'object' as const,
    properties: Object.fromEntries([
      ...own,
      ...(isTold ? [['message', asMessage] as const] : []),
      ...(showsThread(pipeline) && !names.has('thread') ? [['thread', asThread] as const] : []),
    ]),
    required: required.length === 0 && isTold ? ['message'] : required,
    additionalProperties: pipeline.input === undefined ? false : additionalProperties,
  })
}

/** `metadata.mcp.threads`. */
export function showsThread({ metadata }: Pipeline): boolean {
  return metadata.mcp?.threads === true
}

export interface CallInput {
  input: Record<string, unknown>
  /** The user message. */
  message?: string
  thread?: string
}

/** The arguments of a call, with the defaults of the schema; or all that is wrong with them, for the model. */
export function readArguments(pipeline: Pipeline, given: unknown): CallInput | { faults: string } {
  const schema = inputSchemaOf(pipeline)
  const { value, faults } = checkValue(schema, given ?? {}, 'arguments')
  if (isObject(given)) {
    for (const key of reserved) {
      if (
        Object.hasOwn(given, key) &&
        !Object.hasOwn(schema.properties ?? {}, key) &&
        schema.additionalProperties !== false
      )
        faults.push(`arguments.${key} is no parameter of this tool`)
    }
  }
  if (faults.length > 0) return { faults: `The arguments do not fit: ${firstFaults(faults)}.` }
  const input = { ...(value as Record<string, unknown>) }
  const isOwn = (key: string) => Object.hasOwn(pipeline.input?.properties ?? {}, key)
  const taken: { message?: string; thread?: string } = {}
  for (const key of ['message', 'thread'] as const) {
    if (isOwn(key) || typeof input[key] !== 'string' || !Object.hasOwn(schema.properties ?? {}, key)) continue
    taken[key] = input[key]
    delete input[key]
  }
  return { input, ...taken }
}

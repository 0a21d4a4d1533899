/** The agents that a caller may use, as tools of MCP. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import type { ValueSchema } from '../../pipeline/value-schema.ts'
import { agentInput, agentParameters } from '../../pipeline/agent-parameters.ts'
import { checkValue, firstFaults } from '../../pipeline/check-input.ts'
import { listedAgents } from '../../runtime/runtime-errors.ts'
import type { Agent, AgentSource } from '../../runtime/runtime.ts'
import { toOutputSchema, type Era } from './content.ts'

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

export function toTool(agent: Agent, agents: Pick<AgentSource, 'get'>, era: Era): McpTool {
  const { id, pipeline } = agent
  const { name, description } = pipeline.metadata
  const { output } = pipeline
  return omitUndefined({
    name: id,
    title: name,
    description: description && shownText(description),
    inputSchema: inputSchemaOf(agent, agents),
    outputSchema: output && toOutputSchema(output as Record<string, unknown>, era),
  })
}

function shownText(text: string): string {
  // Line breaks and tabs stay.
  return text.replaceAll(/(?![\n\t])[\p{Cc}\p{Cf}]/gu, '').slice(0, longestDescription)
}

const asThread: ValueSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 256,
  description: 'Continues this conversation. Take it from an earlier result. Without it a new one begins.',
}

/** The parameters of an agent tool, and `thread` if the agent wants it. */
export function inputSchemaOf({ pipeline }: Agent, agents: Pick<AgentSource, 'get'>): ValueSchema {
  const schema = agentParameters(pipeline, { find: (name) => agents.get(name)?.pipeline })
  const { properties = {}, required = [] } = schema
  const { message } = properties
  // The message that is not the agent's own: without it there may be nothing to answer.
  const isTold = message !== undefined && !hasOwn(pipeline, 'message') && required.includes('message')
  return omitUndefined({
    ...schema,
    properties: {
      ...properties,
      ...(isTold && { message: { ...message, minLength: 1 } }),
      ...(takesThread(pipeline) && { thread: asThread }),
    },
    // An agent without a schema takes nothing but the message.
    additionalProperties: pipeline.input === undefined ? false : pipeline.input.additionalProperties,
  })
}

function hasOwn({ input }: Pipeline, name: string): boolean {
  return Object.hasOwn(input?.properties ?? {}, name)
}

/** `metadata.mcp.threads`, unless the agent has such an input of its own. */
function takesThread(pipeline: Pipeline): boolean {
  return showsThread(pipeline) && !hasOwn(pipeline, 'thread')
}

export function showsThread({ metadata }: Pipeline): boolean {
  return metadata.mcp?.threads === true
}

export interface CallInput {
  /** `$input` of the run. */
  input: Record<string, unknown>
  thread?: string
}

/** The arguments of a call, with the defaults of the schema; or all that is wrong with them, for the model. */
export function readArguments(
  agent: Agent,
  agents: Pick<AgentSource, 'get'>,
  given: unknown,
): CallInput | { faults: string } {
  const { pipeline } = agent
  const { value, faults } = checkValue(inputSchemaOf(agent, agents), given ?? {}, 'arguments')
  if (faults.length > 0) return { faults: `The arguments do not fit: ${firstFaults(faults)}.` }
  const { thread, ...rest } = value as Record<string, unknown>
  if (!takesThread(pipeline)) return { input: agentInput(pipeline, value) }
  return { input: agentInput(pipeline, rest), ...(typeof thread === 'string' && { thread }) }
}

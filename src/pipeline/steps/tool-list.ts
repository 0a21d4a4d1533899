/** A list `tools` in the file: of a step whose model calls them, of a script, and of a code tool, whose script calls them. */
import { z } from 'zod'
import { child } from '../check.ts'
import { checkToolNames } from '../names.ts'
import type { AgentToolUse, ClientToolUse, Known, McpToolUse, ToolGroup, ToolUse } from '../pipeline.ts'
import type { FaultCollector } from '../fault.ts'
import { readShapes } from '../read-shape.ts'
import { itemsOf, textOf, type StepContext } from '../reader.ts'
import { flag, isMap, later, list, map, name, nameOf, prompt } from '../scalars.ts'
import type { Node } from '../tree.ts'
import { agentTool, readAgentTool } from './agent-tool.ts'
import { approval, approvalIn, defer, timeout } from './tool-settings.ts'

/** A code tool has a name, too: its faults would be reported as those of a tool. */
function refuseCode(value: unknown, context: z.RefinementCtx): unknown {
  if (!isMap(value) || !('code' in value)) return value
  context.addIssue('is a code tool')
  return z.NEVER
}

const toolUse = z
  .preprocess(
    refuseCode,
    map({
      name: name.describe('Name of a registered tool, of an MCP tool (server_tool) or of a client tool.'),
      description: prompt
        .optional()
        .describe('Description for the model, replacing that of the tool: a string or { file: path }.'),
      approval,
      timeout,
      defer,
      client: flag.optional().describe('true: the tool runs in the client, and the run waits for its result.'),
      parameters: later('shapes')
        .refine(isMap, 'must be a map: name → type')
        .optional()
        .describe('Parameters of a client tool, by name, in the format of "input".'),
    }),
  )
  .meta({ yaml: 'toolUse' })
const mcpUse = map({
  mcp: nameOf('mcpServers').describe('Name of an MCP server. Its tools are offered as server_tool.'),
  tools: list(name).optional().describe('Offer only these tools, by their names on the server.'),
  approval,
  timeout,
  defer,
}) satisfies z.ZodType<McpToolUse>

/** The forms of an item, whoever calls the tools. */
export const toolItem = () => [nameOf('tools'), toolUse, mcpUse, agentTool()] as const
export type ToolItem = z.infer<ReturnType<typeof toolItem>[number]>

/** The client tools of each list. Adds faults, so it is called once, before the schema has accepted the step. */
export type ClientTools = ReadonlyMap<Node, ClientToolUse[]>

/** `tools`: the list of a step. The lists of its code tools are read, too. */
export function readClientTools(tools: Node | undefined, reader: StepContext['reader']): ClientTools {
  const found = new Map<Node, ClientToolUse[]>()
  for (const each of listsOf(tools)) {
    found.set(
      each,
      itemsOf(each).flatMap((item) => readClientTool(item, reader) ?? []),
    )
  }
  return found
}

/** The list and those of its code tools. */
function listsOf(tools: Node | undefined): Node[] {
  if (tools === undefined) return []
  return [tools, ...itemsOf(tools).flatMap((item) => child(item, 'code') ?? [])]
}

/** The parameters of client tools: they hold no references. */
export function parametersIn(tools: Node | undefined): Node[] {
  return listsOf(tools).flatMap((each) => itemsOf(each).flatMap((item) => child(item, 'parameters') ?? []))
}

/** Sorts the items, in the form that the engine uses. `tools`: their list in the text. */
export function toToolGroup(items: readonly ToolItem[], tools: Node | undefined, clients: ClientTools): ToolGroup {
  const group: ToolGroup = { tools: [] }
  const agents: AgentToolUse[] = []
  const nodes = itemsOf(tools).filter((item) => child(item, 'code') === undefined)
  for (const [i, use] of items.entries()) {
    if (typeof use === 'string') group.tools.push({ name: use })
    else if ('mcp' in use) (group.toolSources ??= []).push(use)
    else if ('agent' in use) agents.push(readAgentTool(use, nodes[i]!))
    else if (use.client !== true) {
      const { client: _, parameters: __, ...tool } = use
      group.tools.push(tool satisfies ToolUse)
    }
  }
  const own = (tools && clients.get(tools)) ?? []
  if (own.length > 0) group.clientTools = own
  if (agents.length > 0) group.agentTools = agents
  return group
}

/** Checks a list that a script calls: its names, and what only a model can do. */
export function checkScriptTools(tools: Node | undefined, known: Known | undefined, faults: FaultCollector): void {
  checkToolNames(tools, known, faults)
  for (const item of itemsOf(tools)) {
    const handoff = child(item, 'handoff')
    if (handoff && textOf(handoff) === 'true')
      faults.add(handoff.at, 'a script cannot hand the conversation over; remove "handoff" here')
  }
}

function readClientTool(item: Node, { faults }: StepContext['reader']): ClientToolUse | undefined {
  const [client, name, description, parameters] = ['client', 'name', 'description', 'parameters'].map((key) =>
    child(item, key),
  )
  if (client?.kind !== 'scalar' || client.text !== 'true') {
    if (parameters) {
      faults.add(parameters.at, 'only client tools have "parameters" here; add client: true, or remove "parameters"')
    }
    return undefined
  }
  const timeout = child(item, 'timeout')
  if (timeout) faults.add(timeout.at, '"timeout" does not apply to client tools; remove it')
  const approval = child(item, 'approval')
  const schema = parameters?.kind === 'map' ? readShapes(parameters, faults) : {}
  if (name?.kind !== 'scalar') return undefined
  return {
    name: name.text,
    ...(description?.kind === 'scalar' ? { description: description.text } : undefined),
    inputSchema: { type: 'object', properties: {}, ...schema },
    ...approvalIn(approval),
  }
}

/** `llm`: a conversation with a model, including its tool loop (`engine/tool-loop.ts`). */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import type { Message } from '../../part/message.ts'
import type { CallSettings } from '../../part/part.ts'
import { replyMessages, type ModelReply } from '../../fold/reply-messages.ts'
import { noUsage, type Usage } from '../../part/usage.ts'
import type { Approval } from '../../part/request-part.ts'
import type { ClientToolUse, LlmConfig, ToolGroup, ToolUse } from '../../pipeline/pipeline.ts'
import type { ValueSchema } from '../../pipeline/value-schema.ts'
import { readMcpTools, toToolName, type McpToolImplementation } from '../../tools/mcp/mcp-tool.ts'
import { mcpOf, type Scope } from '../scope.ts'
import { offeredAgents } from '../agent-tools.ts'
import { codeTool } from '../code-tool.ts'
import { handBack } from '../handoff.ts'
import { mcpRun } from '../mcp-tools.ts'
import { handoffIn, isHandedBack, isHandedOff } from '../taken-over.ts'
import { stricter, toApprovals } from '../input.ts'
import { createObjectJudge, hasOwnCalls, misfit, readObject } from '../judge-object.ts'
import { createPartialOutput } from '../partial-output.ts'
import { skillTool } from '../../pipeline/skill-list.ts'
import { offerSkills, withSkills } from '../skills.ts'
import { signIn } from '../mcp-sign-in.ts'
import { toToolSpec } from '../../tools/tool-input.ts'
import { sayTaken, type OfferedTool } from '../tool-call.ts'
import { addSearch, type SearchWishes } from '../tool-search.ts'
import { handedOver, toolLoopResult, runToolLoop, type ToolLoopResult } from '../tool-loop.ts'

/** The value of `result` after an `llm` step and the argument of `onFinish`. Covers all model calls of the step. */
export interface LlmResult extends ToolLoopResult {
  response: { messages: Message[] }
  /** With `output`: the answer's JSON, validated. */
  object?: unknown
}

export interface LlmOptions {
  scope: Scope
  path: string
  /** With `system`, `messages` and the like resolved. */
  config: LlmConfig & CallSettings & { messages: Message[] }
  /** Tools that the client offers in its request, if this step answers it. */
  clientTools: ClientToolUse[]
  /** Whether this step streams the answer to the client. */
  answer: boolean
}

export async function runLlm({ scope, path, config: given, clientTools, answer }: LlmOptions): Promise<LlmResult> {
  const config = withSkills(given)
  const tools = await offeredTools(scope, path, config, clientTools)
  if (answer && scope.handsBackTo !== undefined) {
    const tool = handBack(scope.handsBackTo)
    tools.set(tool.spec.name, tool)
  }
  /** The same id for the whole step, so that clients replace the previous data. */
  const show = (data: unknown) => scope.emit(path, { type: 'data', name: 'output', id: path, data })
  const shows = answer && config.output !== undefined
  const object = createObjectJudge(config)
  await runToolLoop({
    scope,
    path,
    stage: config.stage ?? 'response',
    config,
    tools,
    answers: answer,
    isOver: (replies) => isLast(replies.at(-1)!),
    ...omitUndefined({ object }),
    ...(shows ? { watch: () => createPartialOutput(show) } : undefined),
  })
  const { list } = scope.state.loopAt(path)
  const last = list.at(-1)
  if (object !== undefined && last !== undefined && hasOwnCalls(last) && !handedOver(list)) {
    throw misfit(`the model called tools until "maxSteps" (${config.maxSteps}) was reached.`)
  }
  const usage = scope.state.usageBelow(path) ?? noUsage
  const result = llmResult(list, usage, config.output?.schema, handoffIn(scope.state, path))
  if (shows && result.object !== undefined) show(result.object)
  return result
}

/**
 * Whether emitted text of the step may turn out not to be the answer: then its JSON is shown only when it is complete and valid. Without tools and
 * retries there is only one attempt, which is shown while it is written.
 */
export function holdsText(config: Omit<LlmConfig, 'messages'> & CallSettings, mayCall: boolean): boolean {
  const object = createObjectJudge(config)
  return object !== undefined && (object.retries > 0 || mayCall)
}

/** Whether the loop ends with this reply: it calls none of our tools, its calls were handed over to the client, or another agent has taken over. */
function isLast(reply: ModelReply): boolean {
  return !hasOwnCalls(reply) || handedOver([reply]) || isHandedOff(reply) || isHandedBack(reply)
}

export async function offeredTools(
  scope: Scope,
  path: string,
  config: ToolGroup & Pick<LlmConfig, 'codeTools' | 'skills'>,
  clientTools: ClientToolUse[],
  searches = true,
): Promise<Map<string, OfferedTool>> {
  const tools = new Map<string, OfferedTool>()
  for (const { approval = false, inline, ...spec } of clientTools) {
    tools.set(spec.name, { spec: { ...spec, client: true }, approval, ...omitUndefined({ inline }) })
  }
  const leftOut = new Map<string, string>()
  const wishes: SearchWishes = new Map()
  const tightened = toApprovals(scope.input['tools'])
  for (const { mcp: server, tools: names, defer, ...how } of config.toolSources ?? []) {
    const wanted = names && new Set(names.map((name) => toToolName(server, name)))
    const wish = defer ?? scope.mcp?.servers.get(server)?.search ?? 'many'
    for (const [name, implementation] of await mcpToolsOf(scope, path, server, leftOut)) {
      if (wanted?.has(name) === false) continue
      const other = tools.get(name)?.server
      if (other !== undefined && other !== server && sayShadowed(scope, name, [server, other], leftOut) !== server)
        continue
      if (clientTools.some((tool) => tool.name === name)) sayTaken(scope, name)
      const { inline } = how
      const use = { name, ...how }
      const spec = await toToolSpec(name, implementation)
      wishes.set(name, implementation.searched === true ? true : wish)
      sayChanged(scope, implementation, use)
      const runs = mcpRun(name, implementation, use)
      tools.set(name, { spec, use, implementation, runs, server, ...omitUndefined({ inline }) })
    }
    for (const name of wanted ?? []) if (tools.get(name)?.server !== server) refuseLeftOut(leftOut, name)
  }
  for (const use of config.tools) {
    const own = scope.registry.tools.get(use.name)
    let server: string | undefined
    let ofServer: McpToolImplementation | undefined
    for (const each of own === undefined ? serversOf(scope, use.name) : []) {
      ofServer = (await mcpToolsOf(scope, path, each, leftOut, use.name)).get(use.name)
      if (ofServer !== undefined) server = each
      if (ofServer !== undefined || leftOut.has(use.name)) break
    }
    const implementation = own ?? ofServer
    if (implementation === undefined) {
      refuseLeftOut(leftOut, use.name)
      const known = [...scope.registry.tools.keys()].join(', ') || 'none'
      throw new MillraceError('unknown-tool', `There is no tool "${use.name}". Known tools: ${known}.`)
    }
    // A server-side tool takes precedence: clients must not be able to replace it.
    if (clientTools.some(({ name }) => name === use.name)) sayTaken(scope, use.name)
    const spec = await toToolSpec(use.name, implementation, use.description)
    wishes.set(use.name, use.defer ?? false)
    const isClients = implementation.execute === undefined
    const { inline } = use
    if (ofServer !== undefined) sayChanged(scope, ofServer, use)
    const runs = ofServer && mcpRun(use.name, ofServer, use)
    const offered = { spec: isClients ? { ...spec, client: true as const } : spec, use, implementation }
    tools.set(use.name, { ...offered, ...omitUndefined({ runs, server, inline }) })
  }
  if (searches) addSearch(tools, wishes, scope.state.loopAt(path).base?.tools)
  for (const offered of offeredAgents(scope, path, config.agentTools ?? [])) {
    const { name } = offered.spec
    if (tools.get(name)?.spec.client === true) sayTaken(scope, name)
    else if (tools.has(name)) {
      throw new MillraceError('bad-tools', `There are two tools "${name}". Give the agent another name with "as".`)
    }
    const { inline } = offered.agent?.use ?? {}
    tools.set(name, { ...offered, ...omitUndefined({ inline }) })
  }
  for (const use of config.codeTools ?? []) {
    const inner = await offeredTools(scope, path, use.uses, use.uses.clientTools ?? [], false)
    const isClients = tools.get(use.name)?.spec.client === true
    if (isClients) sayTaken(scope, use.name)
    else if (tools.has(use.name)) {
      throw new MillraceError('bad-tools', `There are two tools "${use.name}". Give the code tool another "name".`)
    }
    const { inline } = use
    tools.set(use.name, { ...codeTool(use, inner), ...omitUndefined({ inline }) })
  }
  if (offerSkills(scope, tools, config.skills)) sayTaken(scope, skillTool)
  for (const [name, tool] of tools) {
    const { spec, use, implementation } = tool
    const approval = stricter(ofAgent(use?.approval, implementation?.approval ?? tool.approval), tightened.get(name))
    if (!approval) continue
    tools.set(name, { ...tool, approval, spec: spec.client ? { ...spec, approval: true } : spec })
  }
  return tools
}

/** The file overrides the tool, but "true" alone does not say that other roles may approve. */
function ofAgent(ofUse: Approval | undefined, ofTool: Approval | undefined): Approval | undefined {
  return ofUse === true ? stricter(ofUse, ofTool) : (ofUse ?? ofTool)
}

/** Nobody looks at the calls of such a tool, so somebody should know that it says something else now. */
function sayChanged(scope: Scope, { changed, mcp }: McpToolImplementation, { name, approval }: ToolUse): void {
  if (changed !== true || approval !== false) return
  const message = `The MCP server "${mcp.server}" describes its tool "${name}" in other words than before, and no call of it needs an approval.`
  scope.emit('', { type: 'warning', code: 'mcp-tool-changed', message })
}

/** `leftOut`: receives the reasons for omitted tools, by their names. `named`: the only one that is wanted. */
async function mcpToolsOf(
  scope: Scope,
  path: string,
  server: string,
  leftOut: Map<string, string>,
  named?: string,
): Promise<Map<string, McpToolImplementation>> {
  const why = await signIn(scope, path, server)
  if (why !== undefined) {
    if (named !== undefined) leftOut.set(named, why)
    scope.emit('', { type: 'warning', code: 'mcp-tool-left-out', message: `${why} Its tools are left out.` })
    return new Map()
  }
  return readMcpTools(mcpOf(scope), server, scope.signal, ({ code, message, leftOut: name, isOneOfMany }) => {
    if (name !== undefined) leftOut.set(name, message)
    if (isOneOfMany !== true) scope.emit('', { type: 'warning', code, message })
  })
}

function refuseLeftOut(leftOut: ReadonlyMap<string, string>, name: string): void {
  const why = leftOut.get(name)
  if (why !== undefined) throw new MillraceError('bad-tools', `The step names a tool that cannot be used. ${why}`)
}

/** Of the tool named `server_tool`: the one with the longest name first, so that the tools of `git_lab` are not those of `git`. */
function serversOf({ mcp }: Scope, name: string): string[] {
  const found = mcp?.names.filter((each) => name.startsWith(`${each}_`)) ?? []
  return found.toSorted((a, b) => b.length - a.length)
}

/** Two servers have a tool of one name: it is that of the one with the longer name, whatever the order in the file. Returns that one. */
function sayShadowed(scope: Scope, name: string, servers: [string, string], leftOut: Map<string, string>): string {
  const [owner, other] = servers.toSorted((a, b) => b.length - a.length) as [string, string]
  const message = `The tool "${name}" of the MCP server "${other}" is left out: the server "${owner}" has a tool of that name. Rename a server.`
  leftOut.set(name, message)
  scope.emit('', { type: 'warning', code: 'mcp-tool-left-out', message })
  return owner
}

/** The result of an `llm` step, derived from its replies. */
export function llmResult(
  list: readonly ModelReply[],
  usage: Usage = noUsage,
  schema?: ValueSchema,
  handoff?: ReturnType<typeof handoffIn>,
): LlmResult {
  const result = { ...toolLoopResult(list, usage), ...(handoff && saidIn(handoff)) }
  return {
    ...result,
    response: { messages: replyMessages(list) },
    ...(schema === undefined || handedOver(list) ? undefined : { object: readObject(result.text, schema) }),
  }
}

/** The answer of the agent that took over is the step's. */
function saidIn({ result: said, finishReason = 'stop' }: NonNullable<ReturnType<typeof handoffIn>>) {
  const text = typeof said === 'string' ? said : JSON.stringify(said ?? null)
  return { text, finishReason, ...(typeof said === 'string' ? undefined : { object: said }) }
}

/** Checks of calls between agents, which need all agents to be loaded. */
import { child } from './check.ts'
import { createFaultCollector, faultsOf, type FaultCollector } from './fault.ts'
import { didYouMean, listNames } from './nearest.ts'
import type { AgentToolUse, CallAgentConfig, Fault, Pipeline, Step, LlmConfig, ToolGroup } from './pipeline.ts'
import { requestKeys, itemsOf, textOf } from './reader.ts'
import { wholeReference } from './reference.ts'
import { walkSteps } from './step-types.ts'
import { toolGroupsOf } from './tool-groups.ts'
import { parseTree } from './tree.ts'

type Message = Parameters<FaultCollector['add']>[1]

/**
 * Finds calls of unknown agents and circular calls. `agents`: by id and by alias (the same pipeline under several names).
 * Returns one fault per call, at its `agent` key, under the first name of the calling agent. Calls whose agent is a variable
 * are not checked; at run time the depth of calls is limited.
 */
export function checkCalls(agents: ReadonlyMap<string, Pipeline>): { agent: string; fault: Fault }[] {
  const names = new Map<Pipeline, string>()
  for (const [name, pipeline] of agents) if (!names.has(pipeline)) names.set(pipeline, name)
  const calls = new Map([...names.keys()].map((pipeline) => [pipeline, callsIn(pipeline)]))
  const called = (pipeline: Pipeline) =>
    (calls.get(pipeline) ?? []).flatMap((call) => (isRecursive(call) ? [] : (agents.get(call.agent) ?? [])))

  function faultsIn(pipeline: Pipeline, agent: string): Fault[] {
    const wrong = new Map<string, Message>()
    for (const call of calls.get(pipeline) ?? []) {
      const { agent: id } = call
      const target = agents.get(id)
      if (target === undefined) {
        const list = listNames(agents.keys())
        wrong.set(id, (hint) => `unknown agent "${id}"${hint(id, agents.keys())}; known agents: ${list}`)
        continue
      }
      const misfit = inputFault(call, target)
      if (misfit !== undefined) wrong.set(id, () => misfit)
      if (isRecursive(call)) {
        if (pipeline.budget === undefined)
          wrong.set(id, () => 'recursive: true needs a limit for all calls together; add "budget" to this file')
        continue
      }
      const way = wayBack(target, pipeline, called)
      if (way === undefined) continue
      const circle = [agent, ...way.map((each) => names.get(each))].join(' → ')
      const cure = 'name' in call ? ', or add recursive: true here and a budget to the file' : ''
      wrong.set(id, `circular call: ${circle}; remove one of these calls${cure}`)
    }
    const faults = wrong.size > 0 ? placeFaults(pipeline, wrong) : []
    return [...faults, ...sideFaults(pipeline, agents)]
  }

  return [...names].flatMap(([pipeline, agent]) => {
    let faults: Fault[]
    try {
      faults = faultsIn(pipeline, agent)
    } catch (error) {
      faults = faultsOf(error)
    }
    return faults.map((fault) => ({ agent, fault }))
  })
}

/** `sideCalls` names an agent, which is another one. */
function sideFaults(pipeline: Pipeline, agents: ReadonlyMap<string, Pipeline>): Fault[] {
  const { sideCalls: id, text: inlined, source: text = inlined } = pipeline
  if (id === undefined) return []
  const target = agents.get(id)
  if (target !== undefined && target !== pipeline) return []
  const faults = createFaultCollector(text)
  const at = child(parseTree(text, createFaultCollector(text)), 'sideCalls')?.at ?? 0
  if (target === pipeline) faults.add(at, '"sideCalls" names this agent itself; name another one, or leave it out')
  else {
    const list = listNames(agents.keys())
    faults.add(at, (hint) => `unknown agent "${id}"${hint(id, agents.keys())}; known agents: ${list}`)
  }
  return faults.list()
}

/** A call of an agent by its id: a `call-agent` step, or an agent tool. */
type AgentCall = CallAgentConfig | AgentToolUse

/** The agent ids that a pipeline calls or lets its models call, including inside containers, without duplicates. */
export function callsOf(pipeline: Pipeline): Set<string> {
  return new Set(callsIn(pipeline).map(({ agent }) => agent))
}

/** Without calls whose agent is a reference. */
function callsIn({ workflow, after }: Pipeline): AgentCall[] {
  const calls: AgentCall[] = []
  const steps = [...workflow, ...after]
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    if (step.type === 'call-agent' && wholeReference(step.config.agent) === undefined) calls.push(step.config)
    for (const { agentTools = [] } of toolGroupsOf(step)) calls.push(...agentTools)
    steps.push(...stepsInside(step))
  }
  return calls
}

function isRecursive(call: AgentCall): boolean {
  return 'recursive' in call && call.recursive === true
}

/** An input that the agent does not have, or one that it needs and nobody gives. */
function inputFault(call: AgentCall, { input: schema }: Pipeline): string | undefined {
  const { input } = call
  if (schema?.properties === undefined || typeof input !== 'object' || input === null) return undefined
  const given = Object.keys(input)
  const known = [...Object.keys(schema.properties), ...requestKeys]
  const isTool = 'name' in call
  const unknown = isTool ? given.find((key) => !known.includes(key)) : undefined
  if (unknown !== undefined) {
    const list = listNames(Object.keys(schema.properties))
    return `"${call.agent}" has no input "${unknown}"${didYouMean(unknown, known)}; its inputs: ${list}`
  }
  // The model gives what the file does not.
  if (isTool) return undefined
  const missing = schema.required?.find((key) => !given.includes(key))
  return missing === undefined ? undefined : `"${call.agent}" needs the input "${missing}"; add it to "input"`
}

/** The direct child steps of a container; empty for other steps. */
export function stepsInside(step: Step): Step[] {
  switch (step.type) {
    case 'condition':
      return [...step.config.then, ...step.config.else]
    case 'loop':
      return step.config.steps
    case 'parallel':
      return step.config.branches.flatMap(({ steps }) => steps)
    default:
      return []
  }
}

/** The shortest chain of calls from one agent to another, including both. */
function wayBack(from: Pipeline, to: Pipeline, next: (pipeline: Pipeline) => Pipeline[]): Pipeline[] | undefined {
  const before = new Map<Pipeline, Pipeline | undefined>([[from, undefined]])
  for (const [pipeline] of before) {
    if (pipeline === to) {
      const way: Pipeline[] = []
      for (let each: Pipeline | undefined = pipeline; each !== undefined; each = before.get(each)) way.unshift(each)
      return way
    }
    for (const each of next(pipeline)) if (!before.has(each)) before.set(each, pipeline)
  }
  return undefined
}

/** The place of an alias in an agent's text; the start of the text if it is not there. */
export function placeOfAlias(
  { text: inlined, source: text = inlined }: Pipeline,
  alias: string,
): Pick<Fault, 'line' | 'column'> {
  const faults = createFaultCollector(text)
  const list = child(child(parseTree(text, createFaultCollector(text)), 'metadata'), 'aliases')
  const item =
    list?.kind === 'list' ? list.items.find((each) => each.kind === 'scalar' && each.text === alias) : undefined
  faults.add(item?.at ?? 0, alias)
  const [{ line, column }] = faults.list() as [Fault]
  return { line, column }
}

/** Parses the text again, because a pipeline keeps no places: files are small, and faults are rare. */
function placeFaults(
  { text: inlined, source: text = inlined }: Pipeline,
  wrong: ReadonlyMap<string, Message>,
): Fault[] {
  const faults: FaultCollector = createFaultCollector(text)
  const root = parseTree(text, createFaultCollector(text))
  for (const key of ['workflow', 'after']) {
    const list = child(root, key)
    if (list === undefined) continue
    for (const { step } of walkSteps([{ list, owner: '' }])) {
      const config = child(step, 'config')
      const tools = itemsOf(child(config, 'tools'))
      const inner = tools.flatMap((tool) => itemsOf(child(tool, 'code')))
      const calls = textOf(child(step, 'type')) === 'call-agent' ? [config] : [...tools, ...inner]
      for (const place of calls) {
        const agent = child(place, 'agent')
        if (agent?.kind !== 'scalar') continue
        const message = wrong.get(agent.text)
        if (message !== undefined) faults.add(agent.at, message)
      }
    }
  }
  return faults.list()
}

/* What an agent's text may set to work where it runs: programs, tools, servers, code and other agents, for somebody who decides whether it may. */

/** One line for each step that does so, in the order of the file: `line 4, step fix: starts the program claude`. */
export function programsOf({ workflow, after }: Pick<Pipeline, 'workflow' | 'after'>): string[] {
  const found: { line: number; text: string }[] = []
  const left = [...workflow, ...after]
  for (let step = left.pop(); step !== undefined; step = left.pop()) {
    left.push(...stepsInside(step))
    const { line, id } = step
    for (const does of doings(step)) found.push({ line, text: `line ${line}, step ${id}: ${does}` })
  }
  return found.toSorted((a, b) => a.line - b.line).map(({ text }) => text)
}

function doings(step: Step): string[] {
  switch (step.type) {
    case 'cli-agent': {
      const { cli, command = [cli], args, env, cwd, permissionMode, allowedTools = [] } = step.config
      const own = [
        `in the folder ${cwd}`,
        ...(env.length === 0 ? [] : [`with ${env.join(', ')} of the environment`]),
        ...(permissionMode === undefined ? [] : [`with the permissions ${permissionMode}`]),
        ...(allowedTools.length === 0 ? [] : [`with the tools ${allowedTools.join(', ')}`]),
      ]
      return [
        `starts the program ${[...command, ...args].map(quoted).join(' ')} ${own.join(', ')}`,
        ...callbacks(step.config),
      ]
    }
    case 'mcp-tool':
      return [`calls ${step.config.tool} of the MCP server ${step.config.server}`]
    case 'llm':
    case 'router': {
      const { codeTools = [] } = step.config
      const scripts = codeTools.flatMap(({ uses }) => toolsOf(uses, 'lets scripts of its model'))
      return [...toolsOf(step.config, 'lets its model'), ...scripts, ...callbacks(step.config)]
    }
    case 'script':
      return ['runs a script in a sandbox', ...toolsOf(step.config.uses, 'lets the script')]
    case 'call-agent':
      return [`calls the agent ${step.config.agent}`]
    case 'custom':
      return [`runs the step type ${step.stepType} of the program`]
    default:
      return []
  }
}

function toolsOf({ tools, toolSources = [], agentTools = [] }: ToolGroup, lets: string): string[] {
  const names = tools.map(({ name }) => name)
  const agents = agentTools.map(({ agent }) => agent)
  const servers = toolSources.map(
    ({ mcp, tools: some }) => `${some?.join(', ') ?? 'all tools'} of the MCP server ${mcp}`,
  )
  return [
    ...(names.length === 0 ? [] : [`${lets} call the tools ${names.join(', ')}`]),
    ...servers.map((server) => `${lets} call ${server}`),
    ...(agents.length === 0 ? [] : [`${lets} call the agents ${agents.join(', ')}`]),
  ]
}

type Called = Partial<Pick<LlmConfig, 'onChunk' | 'onStepFinish' | 'onFinish' | 'onError' | 'onAbort'>> & {
  onStreamPart?: string
  onProgress?: string
  onToolCall?: string
}

function callbacks(config: Called): string[] {
  const { onChunk, onStepFinish, onFinish, onError, onAbort, onStreamPart, onProgress, onToolCall } = config
  const names = [onChunk, onStepFinish, onFinish, onError, onAbort, onStreamPart, onProgress, onToolCall]
  const found = names.filter((name) => name !== undefined)
  return found.length === 0 ? [] : [`calls the callbacks ${[...new Set(found)].join(', ')}`]
}

function quoted(word: string): string {
  return /^[\w./:@=+-]+$/u.test(word) ? word : JSON.stringify(word)
}

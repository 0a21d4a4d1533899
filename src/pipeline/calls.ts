/** Checks of calls between agents, which need all agents to be loaded. */
import { child } from './check.ts'
import { createFaultCollector, faultsOf, type FaultCollector } from './fault.ts'
import { listNames } from './nearest.ts'
import type { Fault, Pipeline, Step, LlmConfig, ToolLoopConfig } from './pipeline.ts'
import { wholeReference } from './reference.ts'
import { walkSteps } from './step-types.ts'
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
  const calls = new Map([...names.keys()].map((pipeline) => [pipeline, callsOf(pipeline)]))
  const called = (pipeline: Pipeline) => [...(calls.get(pipeline) ?? [])].flatMap((name) => agents.get(name) ?? [])

  function faultsIn(pipeline: Pipeline, agent: string): Fault[] {
    const wrong = new Map<string, Message>()
    for (const id of calls.get(pipeline) ?? []) {
      const target = agents.get(id)
      if (target === undefined) {
        const list = listNames(agents.keys())
        wrong.set(id, (hint) => `unknown agent "${id}"${hint(id, agents.keys())}; known agents: ${list}`)
        continue
      }
      const way = wayBack(target, pipeline, called)
      if (way === undefined) continue
      const circle = [agent, ...way.map((each) => names.get(each))].join(' → ')
      wrong.set(id, `circular call: ${circle}; remove one of these calls`)
    }
    return wrong.size > 0 ? placeFaults(pipeline, wrong) : []
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

/** The agent ids that a pipeline calls, including inside containers, without duplicates. */
export function callsOf({ workflow, after }: Pipeline): Set<string> {
  const calls = new Set<string>()
  const steps = [...workflow, ...after]
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    if (step.type === 'call-agent' && wholeReference(step.config.agent) === undefined) calls.add(step.config.agent)
    steps.push(...stepsInside(step))
  }
  return calls
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
      const type = child(step, 'type')
      const agent = child(child(step, 'config'), 'agent')
      if (type?.kind !== 'scalar' || type.text !== 'call-agent' || agent?.kind !== 'scalar') continue
      const message = wrong.get(agent.text)
      if (message !== undefined) faults.add(agent.at, message)
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
    case 'router':
      return [...toolsOf(step.config), ...callbacks(step.config)]
    case 'call-agent':
      return [`calls the agent ${step.config.agent}`]
    case 'custom':
      return [`runs the step type ${step.stepType} of the program`]
    default:
      return []
  }
}

function toolsOf({ tools, toolSources = [] }: ToolLoopConfig): string[] {
  const names = tools.map(({ name }) => name)
  const servers = toolSources.map(
    ({ mcp, tools: some }) => `${some?.join(', ') ?? 'all tools'} of the MCP server ${mcp}`,
  )
  return [
    ...(names.length === 0 ? [] : [`gives its model the tools ${names.join(', ')}`]),
    ...servers.map((server) => `gives its model ${server}`),
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

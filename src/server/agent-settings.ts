/** The settings of an agent's model calls, for a chat that tries others. */
import type { AgentSettings, StepSettings, ToolFacts } from '../part/agent-settings.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { agentParameters } from '../pipeline/agent-parameters.ts'
import { listsOf } from '../pipeline/agent-tree.ts'
import type { Known, Pipeline, Step, ToolLoopConfig } from '../pipeline/pipeline.ts'
import type { Agent, Runtime } from '../runtime/runtime.ts'
import { toToolSpec } from '../tools/tool-input.ts'

type Sources = Pick<Runtime, 'agents' | 'tools'>

/** `showsTexts`: the caller may read texts of agents, and use any tool in one. */
export async function settingsOf(
  { pipeline }: Agent,
  sources: Sources,
  { known, showsTexts }: { known: Known | undefined; showsTexts: boolean },
): Promise<AgentSettings> {
  const steps: StepSettings[] = []
  for (const { path, step } of stepsOf(pipeline)) {
    if (step.type !== 'llm' && step.type !== 'router') continue
    const { model, fallbacks, temperature, system } = step.config
    steps.push(
      omitUndefined({
        path,
        type: step.type,
        answers: (step.type === 'llm' && step.config.stream) || undefined,
        model,
        fallbacks,
        temperature,
        system: showsTexts ? system : undefined,
        tools: await toolsOf(step.config, sources),
      }),
    )
  }
  const models = modelsOf(sources.agents.list(), known)
  if (!showsTexts) return { steps, models }
  const tools = await Promise.all([...sources.tools.keys()].map((name) => serverTool(sources, name)))
  return { steps, models, tools }
}

function* stepsOf({ workflow, after }: Pipeline): Generator<{ path: string; step: Step }> {
  yield* inList(workflow, 'main')
  yield* inList(after, 'after')
}

/** The paths are those of `changeSettings`. */
function* inList(steps: readonly Step[], above: string): Generator<{ path: string; step: Step }> {
  for (const step of steps) {
    const path = `${above}/${step.id}`
    yield { path, step }
    for (const [name, inside] of listsOf(step)) yield* inList(inside, `${path}/${name}`)
  }
}

async function toolsOf(config: ToolLoopConfig, sources: Sources): Promise<ToolFacts[]> {
  const { tools, clientTools = [], agentTools = [], toolSources = [], codeTools = [] } = config
  const { agents } = sources
  const find = (id: string) => agents.get(id)?.pipeline
  return [
    ...(await Promise.all(tools.map(({ name, description }) => serverTool(sources, name, description)))),
    ...clientTools.map(({ name, description, inputSchema }) =>
      facts({ kind: 'client', name, description, inputSchema }),
    ),
    ...agentTools.map(({ agent, name, description, input: fixed, handoff }) => {
      const pipeline = find(agent)
      const inputSchema = pipeline && agentParameters(pipeline, { fixed, hasMessage: handoff !== true, find })
      return facts({ kind: 'agent', name, description: description ?? pipeline?.metadata.description, inputSchema })
    }),
    ...toolSources.map(({ mcp, tools: only }) =>
      facts({
        kind: 'mcp',
        name: `mcp:${mcp}`,
        description: `The tools of the MCP server ${mcp}${only === undefined ? '' : `: ${only.join(', ')}`}.`,
      }),
    ),
    ...codeTools.map(({ name, uses }) => {
      const names = uses.tools.map((each) => each.name)
      return facts({
        kind: 'script',
        name,
        description: `Scripts that the model writes, with ${names.join(', ') || 'no tools'}.`,
      })
    }),
  ]
}

/** A tool of an MCP server has no description here: it is known when the server is asked. */
async function serverTool({ tools }: Sources, name: string, description?: string): Promise<ToolFacts> {
  const implementation = tools.get(name)
  const spec = implementation && (await toToolSpec(name, implementation, description).catch(() => undefined))
  return facts({
    kind: 'server',
    name,
    description: spec?.description ?? description ?? implementation?.description,
    inputSchema: spec?.inputSchema,
  })
}

function facts(all: { [K in keyof ToolFacts]: ToolFacts[K] | undefined }): ToolFacts {
  return omitUndefined(all) as ToolFacts
}

/** Those that agents name, and those of the config. */
export function modelsOf(agents: readonly Agent[], known: Known | undefined): string[] {
  const used = agents.flatMap(({ pipeline }) =>
    [...stepsOf(pipeline)].flatMap(({ step }) =>
      step.type === 'llm' || step.type === 'router'
        ? [step.config.model ?? [], step.config.fallbacks ?? []].flat()
        : [],
    ),
  )
  const all = new Set([...used, ...(known?.models ?? [])])
  return [...all].filter((name) => !name.includes('$')).sort()
}

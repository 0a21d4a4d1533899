/** `GET /ag-ui/:agentId/capabilities`: the declarations of an agent's file, in AG-UI's terms. Unknown capabilities are left out. */
import type { AgentCapabilities, Tool } from '@ag-ui/core'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { ownValue } from '../../part/own-value.ts'
import { agentParameters } from '../../pipeline/agent-parameters.ts'
import { callsOf, stepsInside } from '../../pipeline/calls.ts'
import type { LlmConfig, RouterConfig, Pipeline, Step, ToolGroup } from '../../pipeline/pipeline.ts'
import { toolGroupsOf } from '../../pipeline/tool-groups.ts'
import type { Agent, Runtime } from '../../runtime/runtime.ts'
import { toToolSpec } from '../../tools/tool-input.ts'
import type { HandlerContext } from '../handler-context.ts'
import { version } from '../version.ts'

export async function agentCapabilities(
  { runtime, sockets, isPrivate }: Pick<HandlerContext, 'runtime' | 'sockets' | 'isPrivate'>,
  { id, pipeline }: Agent,
): Promise<AgentCapabilities> {
  const { metadata, workflow, after, timeouts } = pipeline
  const steps = [...workflow, ...after].flatMap(withInner)
  const configs = steps.flatMap((step) => (step.type === 'llm' || step.type === 'router' ? [step.config] : []))
  const answering = configs.filter((config): config is LlmConfig => 'stream' in config)
  const groups = steps.flatMap(toolGroupsOf)
  const items = await toolsOf(runtime, groups)
  const subagents = [...callsOf(pipeline)].flatMap((name) => describe(runtime, name))
  const handoffs = configs.some(({ agentTools = [] }) => agentTools.some(({ handoff }) => handoff === true))
  const takesClientTools =
    answering.length > 0 || configs.some((config) => 'requestTools' in config && config.requestTools)
  const hasTools = items.length > 0 || groups.some(({ toolSources = [] }) => toolSources.length > 0)
  const approvals = groups.some((group) => asksForApproval(runtime, group))
  const runTime = timeouts?.run
  return omitUndefined<AgentCapabilities>({
    identity: omitUndefined({
      name: metadata.name ?? id,
      type: 'millrace',
      description: metadata.description,
      version: metadata.version,
      provider: `Millrace ${version}`,
    }),
    transport: {
      streaming: true,
      websocket: sockets,
      httpBinary: true,
      pushNotifications: false,
      resumable: isPrivate,
    },
    tools: {
      supported: hasTools || takesClientTools,
      items,
      parallelCalls: hasTools || takesClientTools,
      clientProvided: takesClientTools,
    },
    output: { structuredOutput: answering.some(({ output }) => output !== undefined) },
    state: { snapshots: true, deltas: false, memory: steps.some(({ type }) => type === 'memory') },
    multiAgent:
      subagents.length > 0 ? { supported: true, delegation: true, handoffs, subagents } : { supported: false },
    reasoning: omitUndefined({
      supported: configs.some(({ reasoning }) => reasoning !== undefined && reasoning !== 'none') || undefined,
      streaming: true,
      encrypted: true,
    }),
    multimodal: inputsOf(configs),
    execution: omitUndefined({
      codeExecution: steps.some((step) => step.type === 'script' || hasCode(step)),
      maxIterations: configs.length > 0 ? Math.max(...configs.map(({ maxSteps }) => maxSteps)) : undefined,
      maxExecutionTime: typeof runTime === 'number' ? runTime : undefined,
    }),
    humanInTheLoop: { supported: true, approvals, interrupts: true, approveWithEdits: true },
  })
}

function hasCode({ type, config }: Step): boolean {
  return (type === 'llm' || type === 'router') && (config.codeTools ?? []).length > 0
}

function withInner(step: Step): Step[] {
  return [step, ...stepsInside(step).flatMap(withInner)]
}

/** The file's tools with their schemas. The tools of a whole MCP server are known only when the server is asked. */
async function toolsOf({ tools, agents }: Runtime, groups: readonly ToolGroup[]): Promise<Tool[]> {
  const items = new Map<string, Tool>()
  for (const config of groups) {
    for (const { name, description = '', inputSchema } of config.clientTools ?? []) {
      items.set(name, { name, description, parameters: inputSchema })
    }
    for (const { name, description } of config.tools) {
      const implementation = tools.get(name)
      const spec = implementation && (await toToolSpec(name, implementation, description))
      items.set(
        name,
        omitUndefined({ name, description: spec?.description ?? description ?? '', parameters: spec?.inputSchema }),
      )
    }
    for (const { agent, name, description, input: fixed, handoff } of config.agentTools ?? []) {
      const pipeline = agents.get(agent)?.pipeline
      if (pipeline === undefined) continue
      const find = (id: string) => agents.get(id)?.pipeline
      const parameters = agentParameters(pipeline, { fixed, hasMessage: handoff !== true, find })
      items.set(name, { name, description: description ?? pipeline.metadata.description ?? '', parameters })
    }
  }
  return [...items.values()]
}

function asksForApproval({ tools }: Runtime, group: ToolGroup): boolean {
  const { tools: used, toolSources = [], clientTools = [], agentTools = [] } = group
  const isMarked = used.some(({ name, approval }) => Boolean(approval ?? tools.get(name)?.approval))
  return isMarked || [...toolSources, ...clientTools, ...agentTools].some(({ approval }) => Boolean(approval))
}

function describe({ agents }: Runtime, name: string): { name: string; description?: string }[] {
  const called: Pipeline | undefined = agents.get(name)?.pipeline
  return called === undefined ? [] : [omitUndefined({ name, description: called.metadata.description })]
}

/** File types that the protocols of the model servers can carry. Whether a model understands them is unknown here. */
const carried: Readonly<Record<string, NonNullable<AgentCapabilities['multimodal']>['input']>> = {
  google: { image: true, audio: true, video: true, pdf: true, file: true },
  openai: { image: true, pdf: true },
  anthropic: { image: true, pdf: true },
  demo: { image: false, audio: false, video: false, pdf: false, file: false },
}

function inputsOf(configs: readonly (LlmConfig | RouterConfig)[]): AgentCapabilities['multimodal'] {
  const input = ownValue(carried, providerOf(configs.at(-1)?.model ?? ''))
  return input && { input }
}

/** The provider of a model name. Without a prefix it is Google for `gemini…`, otherwise unknown. */
function providerOf(model: string): string {
  const at = model.indexOf(':')
  return at > 0 ? model.slice(0, at) : model.startsWith('gemini') ? 'google' : ''
}

/** An agent in the form of `/api/agents`. */
import { stepsInside } from '../pipeline/calls.ts'
import { needsMessage } from '../pipeline/needs-message.ts'
import type { Step, ToolGroup } from '../pipeline/pipeline.ts'
import { toolGroupsOf } from '../pipeline/tool-groups.ts'
import type { Agent, AgentSource } from '../runtime/runtime.ts'

/** `messageRequired`: a request needs a message, unless it goes on with a conversation that has one. */
export function describeAgent({ id, pipeline }: Agent, agents: Pick<AgentSource, 'get'>) {
  const { metadata, input, workflow, after, skills } = pipeline
  const steps = workflow.concat(after).map((step) => ({
    id: step.id,
    type: step.type === 'custom' ? step.stepType : step.type,
    ...(step.type === 'llm' || step.type === 'router' ? { model: step.config.model } : undefined),
    ...(step.type === 'llm' ? { stream: step.config.stream } : undefined),
  }))
  const all = (step: Step): Step[] => [step, ...stepsInside(step).flatMap(all)]
  const tools = workflow
    .concat(after)
    .flatMap(all)
    .flatMap((step) => toolGroupsOf(step).flatMap(namesIn))
  return {
    id,
    ...metadata,
    ...(pipeline.history && { history: pipeline.history }),
    ...(input && { input }),
    ...(needsMessage(pipeline, (name) => agents.get(name)?.pipeline) && { messageRequired: true }),
    steps,
    tools: [...new Set(tools)],
    ...(skills && { skills: skills.map(({ name, description }) => ({ name, description })) }),
  }
}

function namesIn({ tools, agentTools = [] }: ToolGroup): string[] {
  return [...tools, ...agentTools].map(({ name }) => name)
}

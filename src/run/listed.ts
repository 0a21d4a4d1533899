import type { Agent, AgentSource } from './runtime.ts'

/** The agents that lists show: all but those with `metadata.hidden`. `AgentSource.get` finds these, too. */
export function listedAgents(agents: AgentSource): Agent[] {
  return agents.list().filter(({ pipeline }) => pipeline.metadata.hidden !== true)
}

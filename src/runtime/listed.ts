import type { Agent, AgentSource } from './runtime.ts'

/** The agents for lists: all without `metadata.hidden`. `AgentSource.get` also finds hidden ones. */
export function listedAgents(agents: AgentSource): Agent[] {
  return agents.list().filter(({ pipeline }) => pipeline.metadata.hidden !== true)
}

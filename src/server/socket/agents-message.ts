import type { AgentSource } from '../../runtime/runtime.ts'
import { listedAgents } from '../../runtime/listed.ts'

/** `agents`: what a client may run, and which agent runs if it names none. */
export function agentsMessage(source: AgentSource): object {
  const agents = listedAgents(source).map(({ id, pipeline }) => {
    const { name = id, description } = pipeline.metadata
    return { id, name, ...(description !== undefined && { description }) }
  })
  return { agents, ...(agents.length === 1 && { defaultAgent: agents[0]!.id }) }
}

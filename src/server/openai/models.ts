/** `GET /v1/models`, `GET /v1/models/:id`: agents and their aliases as models. */
import { isPattern } from '../../runtime/agent-names.ts'
import { listedAgents, unknownAgent } from '../../runtime/runtime-errors.ts'
import type { Agent, AgentSource } from '../../runtime/runtime.ts'

/** Agents have no creation date. Clients only need a constant value. */
const created = Date.UTC(2026, 0, 1) / 1000

function toModel(id: string) {
  return { id, object: 'model', created, owned_by: 'millrace' }
}

export function listModels(agents: AgentSource): Response {
  const data = listedAgents(agents).flatMap(({ id, pipeline }) =>
    [id, ...(pipeline.metadata.aliases ?? []).filter((alias) => !isPattern(alias))].map(toModel),
  )
  return Response.json({ object: 'list', data })
}

export function showModel(agents: AgentSource, id: string): Response {
  findAgent(agents, id)
  return Response.json(toModel(id))
}

/** Throws `unknown-agent`. */
export function findAgent(agents: AgentSource, name: string): Agent {
  const agent = agents.get(name)
  if (agent === undefined) throw unknownAgent(name, agents)
  return agent
}

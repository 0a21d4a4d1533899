/** `GET /v1/models`, `GET /v1/models/:id`: agents and their aliases as models, in OpenAI's form or, for clients that say a version of it, Anthropic's. */
import { isPattern } from '../../runtime/agent-names.ts'
import { listedAgents, unknownAgent } from '../../runtime/runtime-errors.ts'
import type { Agent, AgentSource } from '../../runtime/runtime.ts'

/** Agents have no creation date. Clients only need a constant value. */
const created = Date.UTC(2026, 0, 1) / 1000

function toModel(id: string) {
  return { id, object: 'model', created, owned_by: 'millrace' }
}

function toAnthropicModel(id: string) {
  return { type: 'model', id, display_name: id, created_at: new Date(created * 1000).toISOString() }
}

export function listModels(agents: AgentSource, { headers }: Request): Response {
  const ids = listedAgents(agents).flatMap(({ id, pipeline }) => [
    id,
    ...(pipeline.metadata.aliases ?? []).filter((alias) => !isPattern(alias)),
  ])
  if (!headers.has('anthropic-version')) return Response.json({ object: 'list', data: ids.map(toModel) })
  const page = { first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null, has_more: false }
  return Response.json({ data: ids.map(toAnthropicModel), ...page })
}

export function showModel(agents: AgentSource, id: string, { headers }: Request): Response {
  findAgent(agents, id)
  return Response.json(headers.has('anthropic-version') ? toAnthropicModel(id) : toModel(id))
}

/** Throws `unknown-agent`. */
export function findAgent(agents: AgentSource, name: string): Agent {
  const agent = agents.get(name)
  if (agent === undefined) throw unknownAgent(name, agents)
  return agent
}

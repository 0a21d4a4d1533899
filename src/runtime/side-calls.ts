/**
 * Coding CLIs ask for the title of a conversation, or for its summary, with a request beside it: no tools, and JSON with a schema. For an agent with
 * tools and a long prompt that is a whole run for a few words. With `sideCalls` in its file another agent answers these requests.
 */
import type { CallSettings } from '../part/part.ts'
import type { Agent, AgentSource } from './runtime.ts'

export interface SideCall {
  /** The tools in the request. */
  tools: unknown
  responseFormat: CallSettings['responseFormat']
}

/** The agent that answers a request. If the caller may not use the other agent, it is the one that was asked. */
export function answeringAgent(agents: AgentSource, agent: Agent, request: SideCall): Agent {
  const { sideCalls } = agent.pipeline
  return sideCalls !== undefined && isSideCall(request) ? (agents.get(sideCalls) ?? agent) : agent
}

function isSideCall({ tools, responseFormat }: SideCall): boolean {
  const hasTools = Array.isArray(tools) && tools.length > 0
  return !hasTools && responseFormat?.type === 'json' && responseFormat.schema !== undefined
}

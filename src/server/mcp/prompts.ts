/** `metadata.prompts` of agents as prompts of MCP: saved first messages of a user, never instructions of an agent. */
import type { Agent } from '../../runtime/runtime.ts'

export interface Prompt {
  /** `<agent>.<prompt>` */
  name: string
  title?: string
  description?: string
  arguments?: { name: string; description?: string; required?: boolean }[]
}

/** Of these agents, which the caller has chosen (not hidden, of `server.mcp.agents` …), sorted by name. */
export declare function listPrompts(agents: readonly Agent[]): Prompt[]

/** `unknown`: no such prompt. `faults`: its arguments do not fit. Both are -32602. */
export declare function getPrompt(
  agents: readonly Agent[],
  name: unknown,
  given: unknown,
):
  | { description?: string; messages: { role: 'user'; content: { type: 'text'; text: string } }[] }
  | { unknown: true }
  | { faults: string[] }

/** `metadata.prompts` of agents as prompts of MCP: saved first messages of a user, never instructions of an agent. Pure. */
import type { SavedPrompt } from '../../pipeline/mcp-offer.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { ownValue } from '../../part/own-value.ts'
import type { Agent } from '../../runtime/runtime.ts'
import { isObject } from '../access/told-principal.ts'

export interface Prompt {
  /** `<agent>.<prompt>` */
  name: string
  title?: string
  description?: string
  arguments?: { name: string; description?: string; required?: boolean }[]
}

/** A type and no interface: it is sent as fields of a message. */
export type PromptMessages = {
  description?: string
  messages: { role: 'user'; content: { type: 'text'; text: string } }[]
}

/** Of these agents, which the caller has chosen (not hidden, of `server.mcp.agents` …), sorted by name. */
export function listPrompts(agents: readonly Agent[]): Prompt[] {
  return agents
    .flatMap((agent) => (agent.pipeline.metadata.prompts ?? []).map((prompt) => toPrompt(agent, prompt)))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function toPrompt({ id, pipeline }: Agent, { name, description, arguments: given = {} }: SavedPrompt): Prompt {
  const title = pipeline.metadata.name === undefined ? undefined : `${pipeline.metadata.name}: ${name}`
  const list = argumentsOf(given)
  return {
    name: `${id}.${name}`,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(list.length > 0 && { arguments: list }),
  }
}

function argumentsOf(given: Record<string, string>) {
  return Object.entries(given).map(([key, description]) => {
    const isOptional = key.endsWith('?')
    return { name: isOptional ? key.slice(0, -1) : key, description, required: !isOptional }
  })
}

/** `unknown`: no such prompt. `faults`: its arguments do not fit. Both are -32602. */
export function getPrompt(
  agents: readonly Agent[],
  name: unknown,
  given: unknown = {},
): PromptMessages | { unknown: true } | { faults: string[] } {
  const prompt = typeof name === 'string' ? find(agents, name) : undefined
  if (prompt === undefined) return { unknown: true }
  if (!isObject(given)) return { faults: ['arguments must be an object'] }
  const { description, text, arguments: declared = {} } = prompt
  const known = argumentsOf(declared)
  const names = known.map((each) => each.name)
  const faults = Object.keys(given).flatMap((key) => {
    if (names.includes(key)) return typeof ownValue(given, key) === 'string' ? [] : [`${key} must be a string`]
    return [`there is no argument ${JSON.stringify(key.slice(0, 64))}${didYouMean(key, names)}`]
  })
  for (const { name: key, required } of known)
    if (required && ownValue(given, key) === undefined) faults.push(`${key} is missing`)
  if (faults.length > 0) return { faults: faults.slice(0, 20) }
  // In one pass: what a person gives is never a place for another argument.
  const filled = text.replaceAll(/\{([A-Za-z_][\w-]*)\}/gu, (whole, key: string) => {
    return names.includes(key) ? ((ownValue(given, key) as string | undefined) ?? '') : whole
  })
  return {
    ...(description !== undefined && { description }),
    messages: [{ role: 'user', content: { type: 'text', text: filled } }],
  }
}

function find(agents: readonly Agent[], name: string): SavedPrompt | undefined {
  // The name of a prompt has no full stop, that of an agent may have some.
  const dot = name.lastIndexOf('.')
  const agent = agents.find(({ id }) => id === name.slice(0, dot))
  return dot < 1 ? undefined : agent?.pipeline.metadata.prompts?.find((each) => each.name === name.slice(dot + 1))
}

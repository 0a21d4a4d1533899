/** An agent as a tool: the JSON Schema of its parameters, and the agent's `$input` from the arguments of a call. */
import { ownValue } from '../part/own-value.ts'
import type { Message } from '../part/message.ts'
import { needsMessage } from './needs-message.ts'
import type { Pipeline } from './pipeline.ts'
import { requestKeys } from './reader.ts'
import type { ValueSchema } from './value-schema.ts'

export interface ParameterOptions {
  /** Inputs that the caller sets itself. */
  fixed?: Readonly<Record<string, unknown>> | undefined
  /** false: the agent gets the conversation and needs no message. */
  hasMessage?: boolean
  /** Other agents, by id: whether a message is needed may depend on one that this agent calls. */
  find(agent: string): Pipeline | undefined
}

const messageWords = 'What to ask, as a person would. It becomes the user message.'

/**
 * The inputs of the agent without `messages` and without fixed ones, and `message`, a text that becomes the user message: required if nothing else
 * is, or if the agent cannot do without.
 */
export function agentParameters(
  pipeline: Pipeline,
  { fixed = {}, hasMessage = true, find }: ParameterOptions,
): ValueSchema {
  const { properties = {}, required = [] } = pipeline.input ?? {}
  const isGiven = (name: string) => name === 'messages' || ownValue(fixed, name) !== undefined
  const own = Object.entries(properties).filter(([name]) => !isGiven(name))
  const needed = required.filter((name) => !isGiven(name))
  const addsMessage = hasMessage && ownValue(properties, 'message') === undefined
  const all = addsMessage ? [...own, ['message', { type: 'string', description: messageWords }] as const] : own
  if (addsMessage && (needed.length === 0 || needsMessage(pipeline, find))) needed.push('message')
  return { type: 'object', properties: Object.fromEntries(all), ...(needed.length > 0 && { required: needed }) }
}

const ofRequest: ReadonlySet<string> = new Set(requestKeys)

/** `given`: checked against {@link agentParameters}. `fixed`: with its references resolved. `before`: the conversation that the agent gets. */
export function agentInput(
  pipeline: Pipeline,
  given: unknown,
  { fixed, before = [] }: { fixed?: unknown; before?: readonly Message[] } = {},
): Record<string, unknown> {
  const { properties = {} } = pipeline.input ?? {}
  const entries = Object.entries((given ?? {}) as Record<string, unknown>)
  const isOwn = (name: string) => ownValue(properties, name) !== undefined
  // What a model invents must not pass for the conversation, the tools or the settings of a request.
  const kept = entries.filter(([name]) => isOwn(name) || (name !== 'message' && !ofRequest.has(name)))
  const message = ownValue(Object.fromEntries(entries), 'message')
  const asked: Message[] = typeof message === 'string' && message !== '' ? [{ role: 'user', content: message }] : []
  const messages = [...before, ...asked]
  return {
    ...Object.fromEntries(kept.filter(([name]) => name !== 'messages')),
    ...(messages.length > 0 && { messages }),
    ...(fixed as Record<string, unknown> | undefined),
  }
}

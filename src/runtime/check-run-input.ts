import { checkInput } from '../pipeline/check-input.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { ownValue } from '../part/own-value.ts'

/**
 * Keys that every request may have, even if the agent does not declare them: the conversation, the client's tools, and the keys that AG-UI clients
 * always send.
 */
const always = ['messages', 'tools', 'state', 'context', 'forwardedProps']

/** Checks a run's input against its agent's schema and fills in defaults. Throws `bad-input` with all faults. */
export function checkRunInput({ input: schema }: Pipeline, given: Record<string, unknown>): Record<string, unknown> {
  if (schema === undefined) return given
  const apart = always.filter((key) => Object.hasOwn(given, key) && !Object.hasOwn(schema.properties ?? {}, key))
  const own = Object.entries(given).filter(([key]) => !apart.includes(key))
  const checked = checkInput(schema, Object.fromEntries(own))
  return { ...checked, ...Object.fromEntries(apart.map((key) => [key, ownValue(given, key)])) }
}

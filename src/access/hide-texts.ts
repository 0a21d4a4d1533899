/**
 * The log without the texts of agents, for callers that may use agents but not read them: YAML texts, system prompts, and the messages that a step
 * tells its model. What a person said is in `run-start.input`.
 */
import type { Entry } from '../part/entry.ts'
import type { ToolSpec } from '../part/message.ts'

/** The same list if there is nothing to hide, so that readers share what was encoded for one of them. */
export function hideTexts(batch: Entry[]): Entry[] {
  for (let i = 0; i < batch.length; i++) if (hasText(batch[i]!)) return batch.map(withoutText)
  return batch
}

function hasText({ type }: Entry): boolean {
  return type === 'prompt' || type === 'run-start' || type === 'step-start' || type === 'resume'
}

/** Wires must know which calls are for the client, and which of them are gated: a client may run every call that it gets. */
function asNamed({ name, client, approval }: ToolSpec): ToolSpec {
  return { name, inputSchema: {}, ...(client && { client }), ...(approval && { approval }) }
}

function withoutText(entry: Entry): Entry {
  switch (entry.type) {
    case 'run-start':
      return { ...entry, pipeline: '' }
    case 'step-start':
    case 'resume': {
      if (entry.pipeline === undefined) return entry
      const { pipeline: _, ...rest } = entry
      return rest
    }
    case 'prompt': {
      const { system: _system, tools, ...rest } = entry
      const ofClient = tools?.filter(({ client }) => client === true).map(asNamed) ?? []
      return { ...rest, messages: [], ...(ofClient.length > 0 && { tools: ofClient }) }
    }
    default:
      return entry
  }
}

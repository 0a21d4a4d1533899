/**
 * The log without the texts of agents, for callers that may use agents but not read them: YAML texts, system prompts, and the messages that a step
 * tells its model. What a person said is in `run-start.input`.
 */
import type { Entry } from '../part/entry.ts'

/** The same list if there is nothing to hide, so that readers share what was encoded for one of them. */
export function hideTexts(batch: Entry[]): Entry[] {
  for (let i = 0; i < batch.length; i++) if (hasText(batch[i]!)) return batch.map(withoutText)
  return batch
}

function hasText({ type }: Entry): boolean {
  return type === 'prompt' || type === 'run-start' || type === 'step-start' || type === 'resume'
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
      const { system: _system, tools: _tools, ...rest } = entry
      return { ...rest, messages: [] }
    }
    default:
      return entry
  }
}

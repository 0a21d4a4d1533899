import { builtinSteps } from '../pipeline/names.ts'
import type { Known } from '../pipeline/pipeline.ts'
import type { Registry } from './registry.ts'

/** The names that a pipeline may use here. Agents are not included. */
export function namesOf({ tools, callbacks, steps, models, mcp }: Registry): Known {
  return {
    stepTypes: [...new Set([...builtinSteps, ...steps.keys()])],
    replaced: builtinSteps.filter((type) => steps.has(type)),
    tools: [...tools.keys()],
    callbacks: [...callbacks.keys()],
    providers: models.providers,
    mcpServers: mcp?.names ?? [],
    hasDefaultModel: models.defaultModel !== undefined,
  }
}

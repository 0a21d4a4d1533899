/** The lists of tools of a step: its own, and those of its code tools. */
import type { Step, ToolGroup } from './pipeline.ts'

export function toolGroupsOf(step: Step): ToolGroup[] {
  if (step.type === 'script') return [step.config.uses]
  if (step.type !== 'llm' && step.type !== 'router') return []
  return [step.config, ...(step.config.codeTools ?? []).map(({ uses }) => uses)]
}

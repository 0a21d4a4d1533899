import type { Pipeline, Step } from './pipeline.ts'

/** Whether a step of the agent's own takes messages while it answers: an `llm` step with `stream: true`. Steps of called agents take none. */
export function hearsMessages({ workflow }: Pipeline): boolean {
  return anyOf(workflow)
}

function anyOf(steps: readonly Step[]): boolean {
  return steps.some((step) => {
    switch (step.type) {
      case 'llm':
        return step.config.stream
      case 'condition':
        return anyOf(step.config.then) || anyOf(step.config.else)
      case 'parallel':
        return step.config.branches.some((branch) => anyOf(branch.steps))
      default:
        return false
    }
  })
}

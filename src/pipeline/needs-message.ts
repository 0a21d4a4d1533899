/** Whether a run of an agent fails without a message: forms ask for one. */
import type { Pipeline, Step } from './pipeline.ts'
import { references } from './reference.ts'

/**
 * Whether a step that always runs reads `$input.messages` without `?`. Steps of a branch or a loop may not run. `find` has the agents that others
 * call with their whole input.
 */
export function needsMessage(pipeline: Pipeline, find: (agent: string) => Pipeline | undefined): boolean {
  const seen = new Set<Pipeline>()
  const reads = (each: Pipeline): boolean => {
    if (seen.has(each)) return false
    seen.add(each)
    return each.workflow.some(isReader)
  }
  const isReader = (step: Step): boolean => {
    switch (step.type) {
      case 'condition':
        return readsMessages(step.config.if.text)
      case 'loop':
        return readsMessages(step.config.over) || readsMessages(step.config.while?.text)
      case 'parallel':
        return step.config.branches.some(({ steps }) => steps.some(isReader))
      case 'call-agent': {
        const called = step.config.input === undefined ? find(step.config.agent) : undefined
        return readsMessages(step.config.input) || (called !== undefined && reads(called))
      }
      default:
        return readsMessages(step.config)
    }
  }
  return reads(pipeline)
}

function readsMessages(template: unknown): boolean {
  return references(template).some(
    ({ path: [root, key], optional }) => root === 'input' && key === 'messages' && !optional,
  )
}

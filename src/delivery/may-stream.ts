import type { Pipeline, Step } from '../pipeline/pipeline.ts'

/** Whether the answer may be a stream. Custom steps do not count: whether they stream is known only when they do. */
export function mayStream(
  pipeline: Pipeline,
  agent: (id: string) => Pipeline | undefined,
  seen = new Set<Pipeline>(),
): boolean {
  if (seen.has(pipeline)) return false
  seen.add(pipeline)
  const { workflow } = pipeline
  const anyOf = (steps: readonly Step[], last: boolean): boolean =>
    steps.some((step, i) => {
      const isLast = last && i === steps.length - 1
      switch (step.type) {
        case 'llm':
          return step.config.stream
        case 'cli-agent':
          return step.config.stream ?? isLast
        case 'call-agent': {
          if (!(step.config.stream ?? isLast)) return false
          const called = agent(step.config.agent)
          // The agent is unknown: its name may come from a variable.
          return called === undefined || mayStream(called, agent, seen)
        }
        case 'condition':
          return anyOf(step.config.then, isLast) || anyOf(step.config.else, isLast)
        case 'parallel':
          return step.config.branches.some(({ steps: branch }) => anyOf(branch, isLast))
        default:
          return false
      }
    })
  return anyOf(workflow, true)
}

/** A checked agent as a tree of its steps, for drawings. */
import { omitUndefined } from '../part/omit-undefined.ts'
import type { AgentTree, TreeStep } from '../part/agent-tree.ts'
import type { Pipeline, Step } from './pipeline.ts'

export function treeOf({ workflow, after }: Pick<Pipeline, 'workflow' | 'after'>): AgentTree {
  return { workflow: workflow.map(toTree), after: after.map(toTree) }
}

function toTree(step: Step): TreeStep {
  const { id, type, line, result } = step
  const lists = listsOf(step).map(([name, steps]) => ({ name, steps: steps.map(toTree) }))
  return omitUndefined({
    id,
    type: type === 'custom' ? step.stepType : type,
    line,
    result,
    ...detailOf(step),
    lists: lists.length === 0 ? undefined : lists,
  })
}

/** The lists of steps in a container, by name. */
export function listsOf(step: Step): [name: string, steps: Step[]][] {
  switch (step.type) {
    case 'condition':
      return [['then', step.config.then] as [string, Step[]], ['else', step.config.else] as [string, Step[]]].filter(
        ([, steps]) => steps.length > 0,
      )
    case 'loop':
      return [['steps', step.config.steps]]
    case 'parallel':
      return step.config.branches.map(({ name, steps }) => [name, steps])
    default:
      return []
  }
}

function detailOf(step: Step): Partial<TreeStep> {
  switch (step.type) {
    case 'llm':
    case 'router': {
      const { model, tools } = step.config
      return omitUndefined({ model, tools: tools.length === 0 ? undefined : tools.map(({ name }) => name) })
    }
    case 'script': {
      const names = step.config.uses.tools.map(({ name }) => name)
      return omitUndefined({ tools: names.length === 0 ? undefined : names })
    }
    case 'call-agent':
      return { agent: step.config.agent }
    case 'mcp-tool':
      return { runs: `${step.config.server}: ${step.config.tool}` }
    case 'cli-agent':
      return omitUndefined({ runs: step.config.cli, model: step.config.model })
    case 'loop':
      return { max: step.config.max }
    default:
      return {}
  }
}

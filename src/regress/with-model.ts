/** An agent with another model: the same text, with this name as the model of each step that calls one. */
import { child } from '../pipeline/check.ts'
import { createFaultCollector } from '../pipeline/fault.ts'
import { parsePipeline } from '../pipeline/parse.ts'
import type { Known, Pipeline } from '../pipeline/pipeline.ts'
import { walkSteps } from '../pipeline/step-types.ts'
import { parseTree, type Node } from '../pipeline/tree.ts'
import type { Agent, AgentSource } from '../runtime/runtime.ts'

/** Steps without a model use the default model, which the caller replaces. */
export function withModel(pipeline: Pipeline, model: string, known: Known): Pipeline {
  const { text } = pipeline
  const root = parseTree(text, createFaultCollector(text))
  const lists = ['workflow', 'after'].flatMap((key) => child(root, key) ?? [])
  const places: { at: number; end: number }[] = []
  for (const list of lists) {
    for (const { step } of walkSteps([{ list, owner: '' }])) {
      const type = child(step, 'type')
      const name = child(child(step, 'config'), 'model')
      if (type?.kind === 'scalar' && hasModel.has(type.text) && name?.kind === 'scalar') places.push(placeOf(name))
    }
  }
  let changed = text
  // From the end, so that the offsets before stay right. A step behind an alias is at the place of its anchor.
  const distinct = [...new Map(places.map((place) => [place.at, place])).values()]
  for (const { at, end } of distinct.toSorted((a, b) => b.at - a.at)) {
    changed = changed.slice(0, at) + JSON.stringify(model) + changed.slice(end)
  }
  return changed === text ? pipeline : parsePipeline(changed, known)
}

const hasModel: ReadonlySet<string> = new Set(['llm', 'router'])

function placeOf({ at, end }: Extract<Node, { kind: 'scalar' }>): { at: number; end: number } {
  return { at, end }
}

/** All agents with this model, except the one that judges. */
export function agentsWithModel(
  agents: AgentSource,
  model: string,
  known: Known,
  judge: ReadonlySet<string>,
): AgentSource {
  const changed = new Map<Agent, Agent>()
  const change = (agent: Agent): Agent => {
    if (judge.has(agent.id)) return agent
    let found = changed.get(agent)
    if (found === undefined) {
      found = { ...agent, pipeline: withModel(agent.pipeline, model, known) }
      changed.set(agent, found)
    }
    return found
  }
  return {
    get(id) {
      const agent = agents.get(id)
      return agent && change(agent)
    },
    list: () => agents.list().map(change),
  }
}

/** `router`: a model that calls tools before another step answers. It has the keys of `llm` except those for an answer. */
import { respondTool } from '../../part/respond.ts'
import { check, child } from '../check.ts'
import { lazily } from '../lazily.ts'
import type { RouterConfig } from '../pipeline.ts'
import { itemsOf, textOf, type StepContext } from '../reader.ts'
import { flag, integer, map, name, preset } from '../scalars.ts'
import type { Node } from '../tree.ts'
import { checkToolLoop, llmConfig, readSkills, readToolLoop } from './llm.ts'
import { readClientTools } from './tool-list.ts'

export const routerConfig = lazily(() => {
  const { stream: _, output: __, maxSteps: ___, stage: ____, ...shared } = llmConfig().shape
  return map({
    ...shared,
    stage: name.optional().describe('Name of the model call in traces. Default: "router".'),
    maxSteps: preset(integer(1, 1000), 5, 'Maximum number of model calls before it hands over.'),
    clientTools: preset(
      flag,
      false,
      'true: the router may also call the tools that a client sends with its request. Otherwise only the answering step may.',
    ),
  })
})

export function readRouter(node: Node, context: StepContext) {
  const { faults } = context.reader
  checkToolLoop(node, context)
  for (const item of itemsOf(child(node, 'tools'))) {
    const at = item.kind === 'map' ? child(item, 'name') : item
    if (at && textOf(at) === respondTool) {
      faults.add(at.at, `"${respondTool}" is a built-in tool of the router; rename yours`)
    }
    const handoff = child(item, 'handoff')
    if (handoff && textOf(handoff) === 'true')
      faults.add(handoff.at, 'a router does not answer, so no agent can take over; use handoff in an llm step')
  }
  const parsed = check(routerConfig(), node, faults, 'the config of a router step')
  const clients = readClientTools(child(node, 'tools'), context.reader)
  if (parsed === undefined) return undefined
  const { clientTools: requestTools, skills = true, ...keys } = parsed
  const { config, ...own } = readToolLoop(node, keys, clients)
  const router: RouterConfig = { ...config, ...readSkills(node, context, skills), requestTools }
  return { type: 'router' as const, config: router, ...own }
}

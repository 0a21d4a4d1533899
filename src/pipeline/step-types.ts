/** The step types, each with the schema of its `config` and its reader. A new one is a file under steps/ and a line here. */
import type { z } from 'zod'
import { child } from './check.ts'
import type { builtinSteps } from './names.ts'
import type { Step } from './pipeline.ts'
import { itemsOf, type StepContext, type StepList } from './reader.ts'
import { callAgentConfig, readCallAgent } from './steps/call-agent.ts'
import { conditionConfig, readCondition } from './steps/condition.ts'
import { llmConfig, readLlm } from './steps/llm.ts'
import { loopConfig, readLoop } from './steps/loop.ts'
import { memoryConfig, readMemory } from './steps/memory.ts'
import { mcpToolConfig, readMcpTool } from './steps/mcp-tool.ts'
import { outputConfig, readOutputGenerator } from './steps/output-generator.ts'
import { parallelConfig, readParallel } from './steps/parallel.ts'
import { readRouter, routerConfig } from './steps/router.ts'
import type { Node } from './tree.ts'

/** A step without what all steps have; `budget` and `timeouts` when its config has them as well. */
export type StepBody = Step extends infer S ? (S extends Step ? Omit<S, 'id' | 'result' | 'line'> : never) : never

export interface StepType {
  about: string
  config: z.ZodObject
  /** Undefined when the config has faults. */
  read(config: Node, context: StepContext): StepBody | undefined
}

export const stepTypes: ReadonlyMap<string, StepType> = new Map(
  Object.entries({
    llm: { about: 'One conversation with a model, tool calls included.', config: llmConfig, read: readLlm },
    router: {
      about:
        'A model that calls tools until it hands over to a later step, which answers; it hands over with its own tool ' +
        '`respond`, by calling nothing, after two rounds of repeated calls, or at `maxSteps`. Its value: `messages` (for the ' +
        '`messages` of the step that answers), `context` (the same calls and outcomes as text), `respond` (`reason`, `notes`), ' +
        '`text`, `toolCalls`, `toolResults`, `steps`, `usage`, `finishReason`.',
      config: routerConfig,
      read: readRouter,
    },
    memory: {
      about:
        'Recalls what fits of earlier runs of the thread, or keeps facts for later ones. The value of recall: `facts`, `turns` ' +
        '(`user`, `assistant`, `runId`, `at`) and both as `text`, without what the request’s messages hold; that of store: `stored`.',
      config: memoryConfig,
      read: readMemory,
    },
    'output-generator': {
      about: 'A value made of variables, or JSON read out of a text.',
      config: outputConfig,
      read: readOutputGenerator,
    },
    'call-agent': { about: 'Another agent as a step.', config: callAgentConfig, read: readCallAgent },
    'mcp-tool': { about: 'One call of an MCP server’s tool.', config: mcpToolConfig, read: readMcpTool },
    condition: { about: 'Steps that run when something holds.', config: conditionConfig, read: readCondition },
    loop: { about: 'Steps that run several times.', config: loopConfig, read: readLoop },
    parallel: { about: 'Lists of steps that run at once.', config: parallelConfig, read: readParallel },
  } satisfies Record<(typeof builtinSteps)[number], StepType>),
)

/** The keys of a container's config that hold a list of steps; `parallel` has a map of lists instead. */
const listKeys: ReadonlyMap<string, readonly string[]> = new Map([
  ['condition', ['then', 'else']],
  ['loop', ['steps']],
])

/** The lists of steps that a step holds, as they stand in the text. */
export function nestedLists(step: Node): Node[] {
  const config = child(step, 'config')
  const type = child(step, 'type')
  if (type?.kind !== 'scalar') return []
  const branches = type.text === 'parallel' ? child(config, 'branches') : undefined
  const named = branches?.kind === 'map' ? [...branches.entries.values()].map(({ value }) => value) : []
  return [...named, ...(listKeys.get(type.text) ?? []).flatMap((key) => child(config, key) ?? [])]
}

/** Every step of the lists and of the lists inside them, with the lists that it stands in. */
export function* walkSteps(lists: readonly StepList[]): Generator<{ step: Node; lists: readonly StepList[] }> {
  for (const step of itemsOf(lists.at(-1)?.list)) {
    yield { step, lists }
    const id = child(step, 'id')
    const owner = id?.kind === 'scalar' ? id.text : ''
    for (const list of nestedLists(step)) yield* walkSteps([...lists, { list, owner }])
  }
}

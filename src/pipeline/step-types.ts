/** The step types, each with the schema of its `config` and its reader. To add one: a file in steps/ and a line here. */
import type { z } from 'zod'
import { child } from './check.ts'
import type { builtinSteps } from './names.ts'
import type { Step } from './pipeline.ts'
import { itemsOf, type StepContext, type StepList } from './reader.ts'
import { callAgentConfig, readCallAgent } from './steps/call-agent.ts'
import { cliAgentConfig, readCliAgent } from './steps/cli-agent.ts'
import { conditionConfig, readCondition } from './steps/condition.ts'
import { llmConfig, readLlm } from './steps/llm.ts'
import { loopConfig, readLoop } from './steps/loop.ts'
import { memoryConfig, readMemory } from './steps/memory.ts'
import { mcpToolConfig, readMcpTool } from './steps/mcp-tool.ts'
import { outputConfig, readOutputGenerator } from './steps/output-generator.ts'
import { parallelConfig, readParallel } from './steps/parallel.ts'
import { readRouter, routerConfig } from './steps/router.ts'
import { readScript, scriptConfig } from './steps/script.ts'
import type { Node } from './tree.ts'

/** A step without the common keys; with `budget` and `timeouts` if its config has them. */
export type StepBody = Step extends infer S ? (S extends Step ? Omit<S, 'id' | 'result' | 'line'> : never) : never

export interface StepType {
  about: string
  config: () => z.ZodObject
  /** Undefined when the config has faults. */
  read(config: Node, context: StepContext): StepBody | undefined
}

export const stepTypes: ReadonlyMap<string, StepType> = new Map(
  Object.entries({
    llm: { about: 'One conversation with a model, including tool calls.', config: llmConfig, read: readLlm },
    router: {
      about:
        'A model that calls tools until it hands over to a later step, which answers. It hands over when it calls its built-in ' +
        'tool `respond`, calls no tool, repeats its calls for two rounds, or reaches `maxSteps`. Its value: `messages` (for the ' +
        '`messages` of the step that answers), `context` (the same calls and results as text), `respond` (`reason`, `notes`), ' +
        '`text`, `toolCalls`, `toolResults`, `steps`, `usage`, `finishReason`.',
      config: routerConfig,
      read: readRouter,
    },
    memory: {
      about:
        'Recalls relevant parts of earlier runs of the thread, or stores facts for later runs. The value of recall: `facts`, ' +
        '`turns` (`user`, `assistant`, `runId`, `at`) and both as `text`, without what the request already contains; of store: `stored`.',
      config: memoryConfig,
      read: readMemory,
    },
    'output-generator': {
      about: 'A value built from variables, or JSON read from a string.',
      config: outputConfig,
      read: readOutputGenerator,
    },
    'call-agent': { about: 'Runs another agent as a step.', config: callAgentConfig, read: readCallAgent },
    'mcp-tool': { about: 'Calls one tool of an MCP server.', config: mcpToolConfig, read: readMcpTool },
    'cli-agent': {
      about:
        'Runs Claude Code, Codex, Gemini CLI or Qwen Code as a child process. What it writes streams as the answer, with its tools as tools that ' +
        'the server runs. Its value: `text` (its last message), `reasoning`, `sessionId`, `model`, `usage`, `cost`, `exitCode` (null ' +
        'if it was stopped after its result), `toolCalls`, `toolResults`, `steps`, `finishReason`. See docs/cli-agents.md.',
      config: cliAgentConfig,
      read: readCliAgent,
    },
    script: {
      about:
        'Runs JavaScript or TypeScript in a sandbox, which can call tools. Its value is what the script returns. See docs/scripts.md.',
      config: scriptConfig,
      read: readScript,
    },
    condition: {
      about: 'Runs steps if a condition is true, and optionally others if it is false.',
      config: conditionConfig,
      read: readCondition,
    },
    loop: { about: 'Runs steps several times.', config: loopConfig, read: readLoop },
    parallel: { about: 'Runs lists of steps at the same time.', config: parallelConfig, read: readParallel },
  } satisfies Record<(typeof builtinSteps)[number], StepType>),
)

/** The keys of a container's config that hold a list of steps; `parallel` has a map of lists instead. */
const listKeys: ReadonlyMap<string, readonly string[]> = new Map([
  ['condition', ['then', 'else']],
  ['loop', ['steps']],
])

/** The lists of steps inside a step, in file order. */
export function nestedLists(step: Node): Node[] {
  const config = child(step, 'config')
  const type = child(step, 'type')
  if (type?.kind !== 'scalar') return []
  const branches = type.text === 'parallel' ? child(config, 'branches') : undefined
  const named = branches?.kind === 'map' ? [...branches.entries.values()].map(({ value }) => value) : []
  return [...named, ...(listKeys.get(type.text) ?? []).flatMap((key) => child(config, key) ?? [])]
}

/** Every step of the innermost list and of the lists inside its steps, with the lists that contain it. */
export function* walkSteps(lists: readonly StepList[]): Generator<{ step: Node; lists: readonly StepList[] }> {
  for (const step of itemsOf(lists.at(-1)?.list)) {
    yield { step, lists }
    const id = child(step, 'id')
    const owner = id?.kind === 'scalar' ? id.text : ''
    for (const list of nestedLists(step)) yield* walkSteps([...lists, { list, owner }])
  }
}

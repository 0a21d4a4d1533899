/** The known shape of a step's value. `test/engine/shapes.test.ts` compares it with the values of real runs. */
import { child } from './check.ts'
import type { Step } from './pipeline.ts'
import { itemsOf, type StepScope, type PipelineReader, shapeOfPath } from './reader.ts'
import { wholeReference } from './reference.ts'
import { listOf, mapOf, scalar, shapeOfSchema, type ValueShape } from './shape.ts'
import type { StepBody } from './step-types.ts'
import { toTemplate } from './template.ts'
import type { Node } from './tree.ts'

const { text, number, flag } = scalar

const usage = mapOf({
  inputTokens: number,
  outputTokens: number,
  totalTokens: number,
  reasoningTokens: number,
  cachedInputTokens: number,
  cacheWriteInputTokens: number,
  source: text,
})
const call = { toolCallId: text, toolName: text, input: undefined }
const modelCall = {
  text,
  reasoning: text,
  finishReason: text,
  toolCalls: listOf(mapOf(call)),
  toolResults: listOf(mapOf({ ...call, output: undefined, isError: flag })),
}
export const toolLoopFields = { ...modelCall, usage, totalUsage: usage, steps: listOf(mapOf({ ...modelCall, usage })) }
export const llmFields = { ...toolLoopFields, response: mapOf({ messages: listOf() }) }
const llm = mapOf(llmFields)
export const routerFields = {
  ...toolLoopFields,
  messages: listOf(),
  context: text,
  respond: mapOf({ reason: text, notes: text }),
}
const router = mapOf(routerFields)
export const cliAgentFields = {
  ...toolLoopFields,
  steps: listOf(mapOf(modelCall)),
  sessionId: text,
  model: text,
  cost: number,
  exitCode: number,
  object: undefined,
}
const cliAgent = mapOf(cliAgentFields)
const turn = mapOf({ runId: text, at: number, user: text, assistant: text })
export const recalledFields = { facts: listOf(text), turns: listOf(turn), text }
const recalled = mapOf(recalledFields)
export const storedFields = { stored: listOf(text) }
const stored = mapOf(storedFields)

/** `config` is the node in the text. Returns undefined if the shape is unknown. */
export function shapeOfStep(
  body: StepBody,
  config: Node | undefined,
  place: StepScope,
  reader: PipelineReader,
): ValueShape | undefined {
  switch (body.type) {
    case 'llm': {
      const { output } = body.config
      return output === undefined ? llm : mapOf({ ...llmFields, object: shapeOfSchema(output.schema) })
    }
    case 'router':
      return router
    case 'cli-agent':
      return cliAgent
    case 'script':
      return body.config.output && shapeOfSchema(body.config.output)
    case 'memory':
      return body.config.action === 'recall' ? recalled : stored
    case 'output-generator': {
      const template = child(config, 'template')
      return template && shapeOfTemplate(template, place, reader)
    }
    case 'condition': {
      const { then, else: otherwise } = body.config
      const lists = [then, otherwise].map((steps, i) =>
        shapeOfList(steps, child(config, i === 0 ? 'then' : 'else'), reader),
      )
      return { kind: 'either', shapes: lists }
    }
    case 'loop':
      return listOf(shapeOfList(body.config.steps, child(config, 'steps'), reader))
    case 'parallel': {
      const { branches, onError } = body.config
      const nodes = child(config, 'branches')
      const shapes = branches.map(({ name, steps }): [string, ValueShape | undefined] => {
        const shape = shapeOfList(steps, child(nodes, name), reader)
        return [name, onError === 'continue' ? { kind: 'either', shapes: [shape, failed] } : shape]
      })
      return { kind: 'map', fields: new Map(shapes) }
    }
    default:
      return undefined
  }
}

const failed = mapOf({ error: undefined })

/** The value of a list is that of the last step that runs; a step that may be the answer can end the list early. */
function shapeOfList(
  steps: readonly Step[],
  list: Node | undefined,
  { shapes }: PipelineReader,
): ValueShape | undefined {
  const last = steps.at(-1)
  if (list === undefined || last === undefined) return list === undefined ? scalar.null : undefined
  const isWhole = steps.length === itemsOf(list).length
  return isWhole && !steps.slice(0, -1).some(mayAnswer) ? shapes.get(last) : undefined
}

const silent: ReadonlySet<Step['type']> = new Set(['router', 'memory', 'output-generator', 'mcp-tool', 'script'])

function mayAnswer({ type, config }: Step): boolean {
  if (type === 'llm' || type === 'call-agent' || type === 'cli-agent') return config.stream === true
  return !silent.has(type)
}

/** The shape of the value of a template. */
export function shapeOfTemplate(node: Node, place: StepScope, reader: PipelineReader): ValueShape | undefined {
  if (node.kind === 'list') return listOf()
  if (node.kind === 'map') {
    const fields = [...node.entries].map(([key, { value }]) => [key, shapeOfTemplate(value, place, reader)] as const)
    return { kind: 'map', fields: new Map(fields) }
  }
  const reference = wholeReference(node.text)
  if (reference !== undefined) return shapeOfPath(reference.path, place, reader)
  const value = toTemplate(node)
  if (typeof value === 'string') return text
  if (value === null) return scalar.null
  return typeof value === 'number' ? number : flag
}

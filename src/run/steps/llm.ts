/**
 * `llm`: a model with its tool loop. What to do next is read off the loop's own entries (`part/turns.ts`), so that a fresh
 * start, going on after a client's answer and going on after a crash are one piece of code.
 */
import type { JSONSchema7 } from '@ai-sdk/provider'
import { messageOf, MillraceError } from '../../part/error.ts'
import { textOf } from '../../part/fold.ts'
import type { Message, ToolSpec } from '../../part/message.ts'
import { turnMessages, type Turn } from '../../part/turns.ts'
import { addUsage, noUsage, type Usage } from '../../part/usage.ts'
import { checkValue } from '../../pipeline/check-input.ts'
import type { LlmConfig } from '../../pipeline/llm-config.ts'
import type { ValueSchema } from '../../pipeline/value-schema.ts'
import { readMcpTools, toToolName } from '../mcp/mcp-tool.ts'
import { mcpOf } from '../mcp-of.ts'
import type { ToolImplementation } from '../ports.ts'
import { readJson } from './output-generator.ts'
import { createPartialOutput } from '../partial-output.ts'
import { atPlace } from '../models/recording.ts'
import { endProviderCalls, runModelCall, settleModelCall } from '../model-call.ts'
import { toToolSpec } from '../model.ts'
import { toldBefore, type Scope } from '../scope.ts'
import { closeSettled, settleCall, type OfferedTool } from '../tool-call.ts'

/** What `result` holds after an `llm` step, and what `onFinish` is given. Spans all model calls of the step. */
export interface LlmResult {
  /** The last call's text. */
  text: string
  reasoning: string
  usage: Usage
  totalUsage: Usage
  finishReason: string
  steps: LlmStepResult[]
  toolCalls: { toolCallId: string; toolName: string; input: unknown }[]
  toolResults: { toolCallId: string; toolName: string; input: unknown; output: unknown; isError: boolean }[]
  response: { messages: Message[] }
  /** With `output`: the answer's JSON, checked. */
  object?: unknown
}
/** One model call of an `llm` step. */
export interface LlmStepResult {
  text: string
  reasoning: string
  finishReason: string
  toolCalls: LlmResult['toolCalls']
  toolResults: LlmResult['toolResults']
}

export interface LlmOptions {
  scope: Scope
  path: string
  /** With `system`, `messages` and the like resolved. */
  config: LlmConfig & { messages: Message[] }
  /** The tools a client offers with its request, when this step answers it. */
  clientTools: ToolSpec[]
  /** The client reads it while it is written. */
  answer: boolean
}

export async function runLlm({ scope, path, config, clientTools, answer }: LlmOptions): Promise<LlmResult> {
  const { registry, state } = scope
  const turns = state.turns(path)
  const first = config.model ?? registry.models.defaultModel
  if (first === undefined) {
    throw new MillraceError('unknown-model', `Step ${path}: no model is named and the config has no default model.`)
  }
  // All of them at once: a missing key of the first must not become a silent fall-back to the second.
  const place = { step: path, number: () => turns.list.length - 1 }
  const models = [first, ...(config.fallbacks ?? [])].map((name) => {
    return { name, model: atPlace(registry.models.resolve(name), place) }
  })
  const tools = await offeredTools(scope, config, clientTools)
  const specs = [...tools.values()].map(({ spec }) => spec)
  const base = () => turns.base?.messages ?? config.messages
  const messages = () => [...base(), ...turnMessages(turns.list)]

  /** One id for the whole step: a client replaces what it has. */
  const show = (data: unknown) => scope.emit(path, { type: 'data', name: 'output', id: path, data })
  const shows = answer && config.output !== undefined

  for (;;) {
    const last = turns.list.at(-1)
    if (last?.error !== undefined) throw toldBefore(last.error)
    if (last !== undefined && !last.closed) {
      await settleModelCall(scope, path, last)
      continue
    }
    if (last !== undefined) {
      await closeSettled(scope, last)
      const open = last.calls.filter((call) => call.result === undefined && !call.providerExecuted)
      const loop = { root: path, tools, messages }
      await scope.fork(open.map((call) => () => settleCall(scope, loop, call)))
      if (scope.signal.aborted) throw scope.signal.reason
      const ends = isLast(last) || turns.list.length >= config.maxSteps
      if (ends) endProviderCalls(scope, path)
      if (config.onStepFinish !== undefined) await scope.invoke(config.onStepFinish, stepResult(last))
      if (ends) break
    }
    const { onChunk } = config
    const partial = shows ? createPartialOutput(show) : undefined
    const call = runModelCall(scope, {
      root: path,
      stage: config.stage ?? 'response',
      models,
      call: { ...settings(config), messages: messages(), tools: specs },
      newMessages: turns.base === undefined ? config.messages : [],
      tools: specs,
      retries: config.retries,
      ...(onChunk === undefined ? undefined : { onChunk }),
      ...(partial === undefined ? undefined : { onText: partial.delta }),
    })
    await call.finally(partial?.end)
  }
  const result = llmResult(turns.list, usageOf(scope, path), config.output?.schema)
  if (shows && result.object !== undefined) show(result.object)
  return result
}

/** No tool of ours was asked for, or a client was handed the calls: the model has the last word. */
function isLast(turn: Turn): boolean {
  const own = turn.calls.filter((call) => !call.providerExecuted)
  return own.length === 0 || handedOver([turn])
}

/** The client has the word: it comes back with the results of its tools. */
function handedOver(list: readonly Turn[]): boolean {
  return list.at(-1)?.calls.some(({ result }) => result?.outcome === 'handed-over') ?? false
}

async function offeredTools(
  scope: Scope,
  config: LlmConfig,
  clientTools: ToolSpec[],
): Promise<Map<string, OfferedTool>> {
  const tools = new Map<string, OfferedTool>()
  for (const spec of clientTools) tools.set(spec.name, { spec })
  for (const { mcp: server, tools: names, ...how } of config.toolSources ?? []) {
    const wanted = names && new Set(names.map((name) => toToolName(server, name)))
    for (const [name, implementation] of await readMcpTools(mcpOf(scope), server, scope.signal)) {
      if (wanted?.has(name) === false) continue
      tools.set(name, { spec: await toToolSpec(name, implementation), use: { name, ...how }, implementation })
    }
  }
  for (const use of config.tools) {
    const implementation = scope.registry.tools.get(use.name) ?? (await findMcpTool(scope, use.name))
    if (implementation === undefined) {
      const known = [...scope.registry.tools.keys()].join(', ') || 'none'
      throw new MillraceError('unknown-tool', `There is no tool "${use.name}". Known tools: ${known}.`)
    }
    // The server's own tool wins over a client's of the same name: a client must not be able to replace it.
    tools.set(use.name, { spec: await toToolSpec(use.name, implementation, use.description), use, implementation })
  }
  return tools
}

function settings(config: LlmConfig) {
  const { system, toolChoice, temperature, maxOutputTokens, topP, stopSequences, seed, reasoning } = config
  const { providerOptions, headers } = config
  const { output } = config
  const responseFormat = output && { type: 'json' as const, schema: output.schema as JSONSchema7 }
  const all = {
    responseFormat,
    system,
    toolChoice,
    temperature,
    maxOutputTokens,
    topP,
    stopSequences,
    seed,
    reasoning,
    providerOptions,
    headers,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Partial<typeof all>
}

function usageOf(scope: Scope, path: string): Usage {
  let usage: Usage | undefined
  for (const [at, finish] of scope.state.finished) {
    if (at.startsWith(`${path}/`) && finish.usage !== undefined) usage = addUsage(usage, finish.usage)
  }
  return usage ?? noUsage
}

/** The answer's JSON against its shape. */
function readObject(text: string, schema: ValueSchema): unknown {
  const badOutput = (why: string) => new MillraceError('bad-output', `The answer does not fit its shape: ${why}`)
  let json: unknown
  try {
    json = readJson(text)
  } catch (error) {
    throw badOutput(messageOf(error))
  }
  const { value, faults } = checkValue(schema, json, 'output')
  if (faults.length === 0) return value
  const more = faults.length > 20 ? `; and ${faults.length - 20} more` : ''
  throw badOutput(`${faults.slice(0, 20).join('; ')}${more}.`)
}

/** `server_tool`, when such a server is known. */
async function findMcpTool(scope: Scope, name: string): Promise<ToolImplementation | undefined> {
  const server = scope.registry.mcp?.names.find((each) => name.startsWith(`${each}_`))
  if (server === undefined) return undefined
  return (await readMcpTools(mcpOf(scope), server, scope.signal)).get(name)
}

/** The result of a loop, read off its turns. */
export function llmResult(list: readonly Turn[], usage: Usage = noUsage, schema?: ValueSchema): LlmResult {
  const steps = list.map(stepResult)
  const last = steps.at(-1)
  return {
    text: last?.text ?? '',
    reasoning: steps.map(({ reasoning }) => reasoning).join(''),
    usage,
    totalUsage: usage,
    finishReason: last?.finishReason ?? 'other',
    steps,
    toolCalls: steps.flatMap(({ toolCalls }) => toolCalls),
    toolResults: steps.flatMap(({ toolResults }) => toolResults),
    response: { messages: turnMessages(list) },
    ...(schema === undefined || handedOver(list) ? undefined : { object: readObject(last?.text ?? '', schema) }),
  }
}

function stepResult(turn: Turn): LlmStepResult {
  const calls = turn.content.flatMap((part) => (part.type === 'tool-call' ? [part] : []))
  return {
    text: textOf({ role: 'assistant', content: turn.content }),
    reasoning: turn.content.map((part) => (part.type === 'reasoning' ? part.text : '')).join(''),
    finishReason: turn.finish?.reason.unified ?? 'other',
    toolCalls: calls.map(({ toolCallId, toolName, input }) => ({ toolCallId, toolName, input })),
    toolResults: turn.calls.flatMap(({ toolCallId, toolName, result }) =>
      result === undefined
        ? []
        : [
            {
              toolCallId,
              toolName,
              input: calls.find((call) => call.toolCallId === toolCallId)?.input,
              output: result.result,
              isError: result.isError === true,
            },
          ],
    ),
  }
}

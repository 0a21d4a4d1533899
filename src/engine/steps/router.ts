/**
 * `router`: a model calls tools until it hands over to a later step; its text is never the answer. It hands over by calling the
 * tool `respond`, by a reply without tool calls, after rounds of only repeated calls, or at `maxSteps`.
 */
import type { Message } from '../../part/message.ts'
import { respondTool, respondSpec } from '../../part/respond.ts'
import { smallResult } from '../../fold/result-handle.ts'
import { resultLength } from '../../fold/result-length.ts'
import { replyMessages, type ModelToolCall, type ModelReply } from '../../fold/reply-messages.ts'
import { parseInput } from '../../fold/tool-loop.ts'
import { noUsage, type Usage } from '../../part/usage.ts'
import type { ClientToolUse, RouterConfig } from '../../pipeline/pipeline.ts'
import type { Scope } from '../scope.ts'
import { withSkills } from '../skills.ts'
import type { OfferedTool } from '../tool-call.ts'
import { runToolLoop, toolLoopResult, type ToolLoopResult } from '../tool-loop.ts'
import { offeredTools } from './llm.ts'

/**
 * The value of `result` after a `router` step and the argument of `onFinish`. Calls of `respond` are left out of all lists.
 * `finishReason`: `respond`, `repeats` or `max-steps`, or the model's own if its last reply has no tool calls.
 */
export interface RouterResult extends ToolLoopResult {
  /** The conversation followed by the router's calls and their results. Use it as `messages` of the answering step. */
  messages: Message[]
  /** The same calls and results as text, one per line, for the `system` prompt of a model that rejects other models' calls. */
  context: string
  /** The arguments of `respond`; null if it was not called. */
  respond: { reason?: string; notes?: string } | null
}

/** Number of consecutive rounds of only repeated calls after which the router hands over. */
const repeatedRounds = 2

export interface RouterOptions {
  scope: Scope
  path: string
  /** With `system`, `messages` and the like resolved. */
  config: RouterConfig & { messages: Message[] }
  /** Client tools that the router may call. */
  clientTools: ClientToolUse[]
}

export async function runRouter({ scope, path, config: given, clientTools }: RouterOptions): Promise<RouterResult> {
  const config = withSkills(given)
  const tools = await offeredTools(scope, path, config, clientTools)
  // If the run does not wait for the client, only the answering step may call client tools: it hands the calls over.
  for (const [name, { implementation, agent }] of tools) {
    if (scope.handOver && agent === undefined && implementation?.execute === undefined) tools.delete(name)
  }
  tools.set(respondTool, { spec: respondSpec })
  await runToolLoop({
    scope,
    path,
    stage: config.stage ?? 'router',
    config,
    tools,
    answers: false,
    isOver: (replies) => ending(replies, tools) !== undefined,
    answer: (call, replies) =>
      isRespond(call) ? { result: 'Handed over.' } : repeated(call, replies.slice(0, -1), tools),
  })
  const { list } = scope.state.loopAt(path)
  return routerResult(scope, path, scope.state.usageBelow(path) ?? noUsage, ending(list, tools) ?? 'max-steps')
}

/** The result of a `router` step, derived from its replies. */
export function routerResult(scope: Scope, path: string, usage: Usage, finishReason: string): RouterResult {
  const { base, list } = scope.state.loopAt(path)
  const replies = list.map(withoutRespond)
  // Drop replies without calls: their text is not the answer, and some models reject a trailing assistant message.
  const calling = replies.filter(({ calls }) => calls.some(({ providerExecuted }) => !providerExecuted))
  const result = toolLoopResult(replies, usage)
  return {
    ...result,
    finishReason,
    messages: [...(base?.messages ?? []), ...replyMessages(calling, 'named')],
    context: result.toolResults.map(toLine).join('\n'),
    respond: handedOverWith(list),
  }
}

/** Why the loop ends after these replies; undefined if it continues. */
function ending(replies: readonly ModelReply[], tools: ReadonlyMap<string, OfferedTool>): string | undefined {
  const last = replies.at(-1)!
  const own = last.calls.filter((call) => !call.providerExecuted)
  if (own.some(isRespond)) return respondTool
  if (own.length === 0) return last.finish?.reason.unified ?? 'stop'
  if (replies.length < repeatedRounds) return undefined
  const saysNothingNew = (at: number) =>
    replies[at]!.calls.every(
      (call) => call.providerExecuted || earlier(call, replies.slice(0, at), tools) !== undefined,
    )
  const rounds = Array.from({ length: repeatedRounds }, (_, i) => replies.length - 1 - i)
  return rounds.every(saysNothingNew) ? 'repeats' : undefined
}

function isRespond({ toolName, providerExecuted }: ModelToolCall): boolean {
  return toolName === respondTool && !providerExecuted
}

/** The result for a repeated call. The tool does not run again. `before` are the earlier replies. */
function repeated(call: ModelToolCall, before: readonly ModelReply[], tools: ReadonlyMap<string, OfferedTool>) {
  const same = earlier(call, before, tools)
  if (same === undefined) return undefined
  const { result } = same.result!
  const isLong = resultLength(result, smallResult) > smallResult
  const outcome = isLong ? 'the one above' : JSON.stringify(result)
  return {
    result: `${call.toolName} was already called with these arguments and is not run again. Its result was: ${outcome}`,
  }
}

/** The same call in an earlier reply. Calls to `volatile` tools may be repeated. */
function earlier(
  call: ModelToolCall,
  before: readonly ModelReply[],
  tools: ReadonlyMap<string, OfferedTool>,
): ModelToolCall | undefined {
  return tools.get(call.toolName)?.implementation?.volatile === true ? undefined : sameCall(call, before)
}

function withoutRespond(reply: ModelReply): ModelReply {
  const hidden = new Set(reply.calls.filter(isRespond).map(({ toolCallId }) => toolCallId))
  if (hidden.size === 0) return reply
  return {
    ...reply,
    content: reply.content.filter((part) => part.type !== 'tool-call' || !hidden.has(part.toolCallId)),
    calls: reply.calls.filter(({ toolCallId }) => !hidden.has(toolCallId)),
  }
}

function handedOverWith(replies: readonly ModelReply[]): RouterResult['respond'] {
  const call = replies.flatMap(({ calls }) => calls).find(isRespond)
  if (call === undefined) return null
  const said = parseInput(call.input)
  const { reason, notes } = (typeof said === 'object' && said !== null ? said : {}) as Record<string, unknown>
  return {
    ...(typeof reason === 'string' ? { reason } : undefined),
    ...(typeof notes === 'string' ? { notes } : undefined),
  }
}

function toLine({ toolName, input, output, isError }: ToolLoopResult['toolResults'][number]): string {
  const said = typeof output === 'string' ? output : JSON.stringify(output)
  return `${toolName} ${JSON.stringify(input)} ${isError ? 'failed' : 'gave'}: ${said}`
}

/* Finds earlier equal calls of a loop. A message may have thousands of calls, so they are looked up by a key and not compared one by one. */

/** The first call of these replies with the same tool and arguments and a result. Failed calls do not count. The order of keys is ignored. */
export function sameCall(call: ModelToolCall, replies: readonly ModelReply[]): ModelToolCall | undefined {
  const key = keyOf(call)
  for (const reply of replies) {
    const found = resultsOf(reply).get(key)
    if (found !== undefined) return found
  }
  return undefined
}

const keys = new WeakMap<ModelToolCall, string>()
const results = new WeakMap<ModelReply, ReadonlyMap<string, ModelToolCall>>()

function keyOf(call: ModelToolCall): string {
  const known = keys.get(call)
  if (known !== undefined) return known
  const key = JSON.stringify([call.toolName, parseInput(call.input)], sorted)
  keys.set(call, key)
  return key
}

function resultsOf(reply: ModelReply): ReadonlyMap<string, ModelToolCall> {
  const known = results.get(reply)
  if (known !== undefined) return known
  const found = new Map<string, ModelToolCall>()
  for (const call of reply.calls) {
    const { result } = call
    const gave = result !== undefined && result.isError !== true && result.outcome === undefined
    if (gave && !found.has(keyOf(call))) found.set(keyOf(call), call)
  }
  // Cached only when all calls have outcomes: until then results may be added.
  if (reply.calls.every(({ result }) => result !== undefined)) results.set(reply, found)
  return found
}

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

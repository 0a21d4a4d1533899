/**
 * The loop of model calls and tool calls that `llm` and `router` share. The next action is derived from the loop's entries in the
 * log (`fold/tool-loop.ts`), so a new run, a resumed run and a recovered run use the same code.
 */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'
import { textOf } from '../fold/run-view.ts'
import type { Message } from '../part/message.ts'
import type { Part, CallSettings } from '../part/part.ts'
import { badOutput, loopMessages, type ModelToolCall, type ModelReply } from '../fold/reply-messages.ts'
import { noUsage, type Usage } from '../part/usage.ts'
import type { LlmConfig, ToolLoopConfig } from '../pipeline/pipeline.ts'
import { hasOwnCalls, type ObjectJudge, type Verdict } from './judge-object.ts'
import { atPlace } from '../models/recording.ts'
import { endProviderCalls, runModelCall, settleModelCall, inOrder } from './model-call.ts'
import { promptCacheOf } from './prompt-cache.ts'
import { asRecorded, type Scope } from './scope.ts'
import { conversationOf, revisitAgents } from './agent-tools.ts'
import { stayWithAgent } from './handoff.ts'
import { createOffer } from './tool-search.ts'
import { closeSettled, settleCall, type CallingLoop, type OfferedTool } from './tool-call.ts'

/** The result of all model calls of a step. */
export interface ToolLoopResult {
  /** The last call's text. */
  text: string
  reasoning: string
  usage: Usage
  totalUsage: Usage
  finishReason: string
  steps: LlmStepResult[]
  toolCalls: { toolCallId: string; toolName: string; input: unknown }[]
  toolResults: { toolCallId: string; toolName: string; input: unknown; output: unknown; isError: boolean }[]
}
/** One model call of an `llm` or `router` step. */
export interface LlmStepResult {
  text: string
  reasoning: string
  /** The usage of this call alone. */
  usage: Usage
  finishReason: string
  toolCalls: ToolLoopResult['toolCalls']
  toolResults: ToolLoopResult['toolResults']
}

export interface ToolLoopOptions {
  scope: Scope
  path: string
  stage: string
  /** With its references resolved. */
  config: Omit<ToolLoopConfig, 'tools' | 'messages'> &
    Pick<LlmConfig, 'output'> &
    CallSettings & { messages: Message[] }
  tools: ReadonlyMap<string, OfferedTool>
  /** Whether the loop ends after these replies. All calls of the last reply have results. */
  isOver(replies: readonly ModelReply[]): boolean
  /** The result of a call that must not be run. */
  answer?(
    call: ModelToolCall,
    replies: readonly ModelReply[],
  ): Pick<Extract<Part, { type: 'tool-result' }>, 'result'> | undefined
  /** Called before every model call. Returns a receiver for its text. `isAnswer`: the text is the answer. */
  watch?(): { delta(text: string): void; end(isAnswer: boolean): void }
  /** Set if the answer is JSON. */
  object?: ObjectJudge
  /** Whether the loop is the answer for the client. */
  answers: boolean
}

/** Runs the loop to its end, at most `maxSteps` model calls. The result is in its replies. */
export async function runToolLoop(options: ToolLoopOptions): Promise<void> {
  const { scope, path, stage, config, tools, isOver, answer, watch, object, answers } = options
  const { registry, state } = scope
  const loop = state.loopAt(path)
  const first = config.model ?? registry.models.defaultModel
  if (first === undefined) {
    throw new MillraceError('unknown-model', 'the step names no model, and the config has no default model.')
  }
  // Resolves all models first: a missing key of the first must not silently switch to the second.
  const place = { step: path, number: () => loop.list.length - 1 }
  const models = [first, ...(config.fallbacks ?? [])].map((name) => {
    return { name, model: atPlace(registry.models.resolve(name), place) }
  })
  const offered = createOffer(tools)
  const base = () => {
    const first = loop.base?.messages ?? config.messages
    return loop.early.length === 0 ? first : [...first, ...loop.early]
  }
  const messages = () => [...base(), ...loopMessages(loop.list, 'named')]

  function callingOf(last?: ModelReply): CallingLoop {
    // Computed once for all calls of a message, because there may be hundreds.
    let sent: Message[] | undefined
    const before: CallingLoop['before'] = (how) => {
      const replies = loop.list.slice(0, -1)
      if (how === 'handoff' && last !== undefined) replies.push(withoutHandoffs(last, tools))
      return conversationOf(base(), replies)
    }
    return { root: path, tools, messages: () => (sent ??= messages()), before, answers }
  }

  /** Judges the JSON of a call. The model may try again within its retries and `maxSteps`. */
  const verdict = (reply: ModelReply): Verdict | undefined => {
    const found = object?.judge(reply)
    const tried = loop.list.filter(({ rejected }) => rejected !== undefined).length
    const mayAsk = tried < (object?.retries ?? 0) && loop.list.length < config.maxSteps
    return found && { ...found, again: found.again && mayAsk }
  }

  /** Records the messages that have come. The text so far stays, and the model is called once more. */
  const hears = async () => {
    const { steering } = scope
    return answers && steering?.waits === true && (await steering.deliver(path))
  }

  if (loop.list.length > 0) await revisitAgents(scope, path, config.agentTools ?? [])
  else if (answers && (await stayWithAgent(scope, callingOf()))) return
  if (loop.list.length === 0) await hears()
  for (;;) {
    const last = loop.list.at(-1)
    if (last?.error !== undefined) throw asRecorded(last.error)
    if (last !== undefined && !last.closed) {
      await settleModelCall(scope, path, last, verdict)
      continue
    }
    if (last !== undefined) {
      await closeSettled(scope, last)
      const open = last.calls.filter((call) => {
        if (call.result !== undefined || call.providerExecuted) return false
        const said = answer?.(call, loop.list)
        if (said === undefined) return true
        const { toolCallId, toolName } = call
        scope.emit(last.path, { type: 'tool-result', toolCallId, toolName, isError: false, ...said })
        return false
      })
      const calling = callingOf(last)
      const isHandoff = ({ toolName }: ModelToolCall) => tools.get(toolName)?.agent?.use.handoff === true
      await scope.fork(open.filter((call) => !isHandoff(call)).map((call) => () => settleCall(scope, calling, call)))
      if (scope.signal.aborted) throw scope.signal.reason
      await settleHandoffs(scope, calling, last, isHandoff)
      const isFull = loop.list.length >= config.maxSteps
      const isEnd = last.rejected === undefined && isOver(loop.list)
      // A message that came with the last words of the answer. An owner before this one may have recorded it.
      const mayHear = isEnd && !isFull && object === undefined && !hasOwnCalls(last) && hasRoom(scope)
      const hasHeard = last.said !== undefined || (mayHear && (await hears()))
      const ends = isFull || (isEnd && !hasHeard)
      if (!ends) await hears()
      // Before the callback, which the next owner calls.
      const held = ends ? undefined : scope.pass()
      if (held !== undefined) await held
      if (ends) endProviderCalls(scope, path)
      if (config.onStepFinish !== undefined) await scope.invoke(config.onStepFinish, stepResult(last))
      if (ends) return
    }
    const { onChunk } = config
    const specs = offered(loop.list)
    const watcher = watch?.()
    try {
      await runModelCall(scope, {
        root: path,
        stage,
        models: inOrder(registry.models, models, loop.list.findLast(({ finish }) => finish !== undefined)?.model),
        call: {
          ...settings(config),
          messages: messages(),
          tools: specs,
          ...omitUndefined({ cache: promptCacheOf(scope, config, specs, base()) }),
        },
        newMessages: loop.base === undefined ? config.messages : [],
        tools: specs,
        retries: config.retries,
        ...omitUndefined({ onChunk }),
        ...(watcher === undefined ? undefined : { onText: watcher.delta }),
        verdict,
      })
    } finally {
      watcher?.end(scope.signal.aborted || isAnswer(loop.list.at(-1)))
    }
  }
}

function hasRoom({ limits }: Scope): boolean {
  return limits.every((limit) => limit.hasRoom())
}

/** The first handoff of a reply counts, after all its other calls. */
async function settleHandoffs(
  scope: Scope,
  calling: CallingLoop,
  reply: ModelReply,
  isHandoff: (call: ModelToolCall) => boolean,
): Promise<void> {
  const begun = reply.calls.find(({ handoff }) => handoff === true)
  const open = reply.calls.filter((call) => call.result === undefined && isHandoff(call))
  const first = begun ?? open[0]
  if (first === undefined) return
  for (const { toolCallId, toolName } of open) {
    if (toolCallId === first.toolCallId) continue
    const result = `The conversation goes to ${first.toolName}: one reply can hand over once.`
    scope.emit(reply.path, { type: 'tool-result', toolCallId, toolName, isError: true, result })
  }
  await settleCall(scope, calling, first)
}

function withoutHandoffs(reply: ModelReply, tools: ReadonlyMap<string, OfferedTool>): ModelReply {
  const isOther = ({ toolName }: { toolName: string }) => tools.get(toolName)?.agent?.use.handoff !== true
  return {
    ...reply,
    content: reply.content.filter((part) => part.type !== 'tool-call' || isOther(part)),
    calls: reply.calls.filter(isOther),
  }
}

/** Whether a call's text is (part of) the answer: it called none of our tools and was not rejected. */
function isAnswer(reply: ModelReply | undefined): boolean {
  if (reply === undefined) return false
  return !hasOwnCalls(reply) && reply.rejected === undefined && reply.error?.code !== badOutput
}

/** Whether calls were handed over to the client, which sends their results with its next request. */
export function handedOver(list: readonly ModelReply[]): boolean {
  return list.at(-1)?.calls.some(({ result }) => result?.outcome === 'handed-over') ?? false
}

function settings(config: ToolLoopOptions['config']) {
  const { system, toolChoice, temperature, maxOutputTokens, topP, stopSequences, seed, reasoning } = config
  const { providerOptions, headers } = config
  const { output } = config
  const { presencePenalty, frequencyPenalty } = config
  // The schema of the file takes precedence, because later steps rely on it.
  const format = output === undefined ? config.responseFormat : { type: 'json' as const, schema: output.schema }
  const responseFormat = format as LanguageModelV4CallOptions['responseFormat']
  const all = {
    responseFormat,
    presencePenalty,
    frequencyPenalty,
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
  return omitUndefined(all)
}

/** Computes a loop's result from its replies. */
export function toolLoopResult(list: readonly ModelReply[], usage: Usage): ToolLoopResult {
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
  }
}

function stepResult(reply: ModelReply): LlmStepResult {
  const calls = reply.content.filter((part) => part.type === 'tool-call')
  // If calls share an id, the first counts.
  const inputs = new Map(calls.toReversed().map(({ toolCallId, input }) => [toolCallId, input]))
  return {
    text: textOf({ role: 'assistant', content: reply.content }),
    reasoning: reply.content.map((part) => (part.type === 'reasoning' ? part.text : '')).join(''),
    usage: reply.usage ?? noUsage,
    finishReason: reply.finish?.reason.unified ?? 'other',
    toolCalls: calls.map(({ toolCallId, toolName, input }) => ({ toolCallId, toolName, input })),
    toolResults: reply.calls.flatMap(({ toolCallId, toolName, result }) =>
      result === undefined
        ? []
        : [
            {
              toolCallId,
              toolName,
              input: inputs.get(toolCallId),
              output: result.result,
              isError: result.isError === true,
            },
          ],
    ),
  }
}

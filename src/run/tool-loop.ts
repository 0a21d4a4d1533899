/**
 * A model and its tools, again and again: what `llm` and `router` share. What to do next is read off the loop's own entries
 * (`part/turns.ts`), so that a fresh start, going on after a client's answer and going on after a crash are one piece of code.
 */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { compact } from '../part/compact.ts'
import { MillraceError } from '../part/error.ts'
import { textOf } from '../part/fold.ts'
import type { Message } from '../part/message.ts'
import type { Part } from '../part/part.ts'
import type { CallSettings } from '../part/settings.ts'
import { badOutput, loopMessages } from '../part/turn-messages.ts'
import type { Call, Turn } from '../part/turns.ts'
import { addUsage, noUsage, type Usage } from '../part/usage.ts'
import type { LlmConfig, ToolLoopConfig } from '../pipeline/llm-config.ts'
import { hasOwnCalls, type ObjectJudge, type Verdict } from './judge-object.ts'
import { atPlace } from './models/recording.ts'
import { endProviderCalls, runModelCall, settleModelCall } from './model-call.ts'
import { toldBefore, type Scope } from './scope.ts'
import { closeSettled, settleCall, type OfferedTool } from './tool-call.ts'

/** What all model calls of a step came to. */
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
  /** Of this call alone. */
  usage: Usage
  finishReason: string
  toolCalls: ToolLoopResult['toolCalls']
  toolResults: ToolLoopResult['toolResults']
}

export interface ToolLoopOptions {
  scope: Scope
  path: string
  stage: string
  /** With `system`, `messages` and the like resolved. */
  config: Omit<ToolLoopConfig, 'tools' | 'messages'> &
    Pick<LlmConfig, 'output'> &
    CallSettings & { messages: Message[] }
  tools: ReadonlyMap<string, OfferedTool>
  /** Whether the loop ends behind these turns; the calls of the last one have their outcomes. */
  isOver(turns: readonly Turn[]): boolean
  /** The outcome of a call that is not to be run. */
  answer?(call: Call, turns: readonly Turn[]): Pick<Extract<Part, { type: 'tool-result' }>, 'result'> | undefined
  /** Asked before every model call: who sees its text as it is written. `end`: whether the text is the answer. */
  watch?(): { delta(text: string): void; end(isAnswer: boolean): void }
  /** Where the answer is JSON. */
  object?: ObjectJudge
}

/** Resolves when the loop has ended, at the latest after `maxSteps` model calls; what it came to is in its turns. */
export async function runToolLoop(options: ToolLoopOptions): Promise<void> {
  const { scope, path, stage, config, tools, isOver, answer, watch, object } = options
  const { registry, state } = scope
  const turns = state.turns(path)
  const first = config.model ?? registry.models.defaultModel
  if (first === undefined) {
    throw new MillraceError('unknown-model', 'no model is named and the config has no default model.')
  }
  // All of them at once: a missing key of the first must not become a silent fall-back to the second.
  const place = { step: path, number: () => turns.list.length - 1 }
  const models = [first, ...(config.fallbacks ?? [])].map((name) => {
    return { name, model: atPlace(registry.models.resolve(name), place) }
  })
  const specs = [...tools.values()].map(({ spec }) => spec)
  const base = () => turns.base?.messages ?? config.messages
  const messages = () => [...base(), ...loopMessages(turns.list)]

  /** What is wrong with the JSON of a call, and whether the model may be asked again: within its retries and `maxSteps`. */
  const verdict = (turn: Turn): Verdict | undefined => {
    const found = object?.judge(turn)
    const tried = turns.list.filter(({ rejected }) => rejected !== undefined).length
    const mayAsk = tried < (object?.retries ?? 0) && turns.list.length < config.maxSteps
    return found && { ...found, again: found.again && mayAsk }
  }

  for (;;) {
    const last = turns.list.at(-1)
    if (last?.error !== undefined) throw toldBefore(last.error)
    if (last !== undefined && !last.closed) {
      await settleModelCall(scope, path, last, verdict)
      continue
    }
    if (last !== undefined) {
      await closeSettled(scope, last)
      const open = last.calls.filter((call) => {
        if (call.result !== undefined || call.providerExecuted) return false
        const said = answer?.(call, turns.list)
        if (said === undefined) return true
        const { toolCallId, toolName } = call
        scope.emit(last.path, { type: 'tool-result', toolCallId, toolName, isError: false, ...said })
        return false
      })
      // Once for all calls of a message: a model may make hundreds.
      let told: Message[] | undefined
      const loop = { root: path, tools, messages: () => (told ??= messages()) }
      await scope.fork(open.map((call) => () => settleCall(scope, loop, call)))
      if (scope.signal.aborted) throw scope.signal.reason
      const ends = (last.rejected === undefined && isOver(turns.list)) || turns.list.length >= config.maxSteps
      if (ends) endProviderCalls(scope, path)
      if (config.onStepFinish !== undefined) await scope.invoke(config.onStepFinish, stepResult(last))
      if (ends) return
    }
    const { onChunk } = config
    const watcher = watch?.()
    const call = runModelCall(scope, {
      root: path,
      stage,
      models,
      call: { ...settings(config), messages: messages(), tools: specs },
      newMessages: turns.base === undefined ? config.messages : [],
      tools: specs,
      retries: config.retries,
      ...(onChunk === undefined ? undefined : { onChunk }),
      ...(watcher === undefined ? undefined : { onText: watcher.delta }),
      verdict,
    })
    await call.finally(() => watcher?.end(scope.signal.aborted || isAnswer(turns.list.at(-1))))
  }
}

/** What a call said is the answer, as far as it goes: it called nothing of ours and was not found to be wrong. */
function isAnswer(turn: Turn | undefined): boolean {
  if (turn === undefined) return false
  return !hasOwnCalls(turn) && turn.rejected === undefined && turn.error?.code !== badOutput
}

/** The client has the word: it comes back with the results of its tools. */
export function handedOver(list: readonly Turn[]): boolean {
  return list.at(-1)?.calls.some(({ result }) => result?.outcome === 'handed-over') ?? false
}

function settings(config: ToolLoopOptions['config']) {
  const { system, toolChoice, temperature, maxOutputTokens, topP, stopSequences, seed, reasoning } = config
  const { providerOptions, headers } = config
  const { output } = config
  const { presencePenalty, frequencyPenalty } = config
  // The shape that the file gives is the one that later steps rely on.
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
  return compact(all)
}

export function usageOf(scope: Scope, path: string): Usage {
  let usage: Usage | undefined
  for (const [at, finish] of scope.state.finished) {
    if (at.startsWith(`${path}/`) && finish.usage !== undefined) usage = addUsage(usage, finish.usage)
  }
  return usage ?? noUsage
}

/** The result of a loop, read off its turns. */
export function toolLoopResult(list: readonly Turn[], usage: Usage): ToolLoopResult {
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

function stepResult(turn: Turn): LlmStepResult {
  const calls = turn.content.flatMap((part) => (part.type === 'tool-call' ? [part] : []))
  return {
    text: textOf({ role: 'assistant', content: turn.content }),
    reasoning: turn.content.map((part) => (part.type === 'reasoning' ? part.text : '')).join(''),
    usage: turn.usage ?? noUsage,
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

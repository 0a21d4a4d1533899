/**
 * Converts a run's entries to OpenAI output, in order: one state machine for the stream and for the single JSON, so that both
 * have the same content. The mapping is in `openai.ts`.
 */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { isUnder } from '../../part/path.ts'
import { addUsage, noUsage, type Usage } from '../../part/usage.ts'
import { createAnswerWords, outputText } from '../answer-words.ts'
import { createAnswering } from '../../fold/answering.ts'
import { createHeldText } from '../held-text.ts'
import { createOpenAiCalls } from './openai-calls.ts'
import { createOpenAiEnding } from './openai-ending.ts'
import { toOpenAiMessages } from './to-openai-messages.ts'
import type { OpenAiHead, OpenAiOptions, OpenAiOutput } from './openai-output.ts'
import { createOpenAiWaiting } from './openai-waiting.ts'
import { createPrompts } from './openai-prompts.ts'
import type { Projection, WireContext } from '../wire.ts'

export function createOpenAiAnswer(
  { resumedAt = 0 }: WireContext,
  options: Partial<OpenAiOptions>,
  output: OpenAiOutput,
): Projection {
  const { extensions = [], toolOutputMaxChars = 8000, model: asked, from = 0 } = options
  const textOnly = options.object === 'text_completion'
  const answering = createAnswering()
  const words = createAnswerWords()
  const thoughts = createAnswerWords()
  const held = createHeldText()
  const waiting = createOpenAiWaiting(textOnly)
  const ending = createOpenAiEnding()
  let head: OpenAiHead | undefined
  let isJson = false
  let isAnew = false
  let hasText = false
  /** Of this client's part of the answer, if it is not the whole. */
  let usage: Usage | undefined
  const showsServer = extensions.includes('tools')
  const calls = createOpenAiCalls({ textOnly, showsServer, toolOutputMaxChars, output })
  const prompts = extensions.includes('trace') ? createPrompts() : undefined

  function take(entry: Entry): void {
    const due = held.take(entry)
    if (due === undefined) apply(entry)
    else for (const each of due) apply(each)
  }

  /** The run went on in an answer of its own: only what follows is in it. */
  function beginAnew(): void {
    isAnew = true
    ending.restart()
    for (const each of [calls, words, thoughts]) each.restart()
    usage = undefined
    hasText = false
    if (head !== undefined) output.begin(head)
  }

  function apply(entry: Entry): void {
    if (answer.state !== 'open') return
    if (from > 0 && entry.seq >= from && !isAnew) beginAnew()
    if (entry.type === 'response') {
      const request = waiting.request(entry.requestId)
      if (request !== undefined) calls.response(request, entry)
    }
    if (entry.type !== 'text-delta') waiting.apply(entry)
    prompts?.apply(entry)
    switch (entry.type) {
      case 'text-delta':
        if (!answering.has(entry.step)) return
        ending.said(entry.step)
        return say(words.add(entry))
      case 'reasoning-delta':
        if (textOnly || !answering.has(entry.step)) return
        return think(thoughts.add(entry))
      case 'tool-input-delta':
        return calls.inputDelta(entry)
      case 'run-start': {
        const { runId, timestamp, labels, agent } = entry
        calls.runStart(entry)
        isJson = entry.settings?.responseFormat?.type === 'json'
        head = {
          id: `${textOnly ? 'cmpl' : 'chatcmpl'}-${runId}`,
          created: Math.floor(timestamp / 1000),
          model: asked ?? labels?.['model'] ?? agent,
        }
        return output.begin(head)
      }
      case 'step-start':
        answering.note(entry)
        if (entry.object === true) isJson = true
        calls.stepStart(entry)
        ending.stepStart(entry)
        return speak(entry)
      case 'step-finish':
        speak(entry)
        calls.stepFinish(entry.step)
        return ending.stepFinish(entry, calls.handedOver(entry.step))
      case 'step-reset':
        return reset(entry.step)
      case 'prompt':
        calls.prompt(entry)
        return trace(entry)
      case 'tool-input-start':
        return calls.inputStart(entry)
      case 'tool-call':
        return calls.call(entry)
      case 'tool-result':
        return calls.result(entry)
      case 'answer-end':
        ending.answerEnd(entry, calls.handedOver())
        return finish(entry.usage)
      case 'suspend':
        if (entry.seq >= resumedAt) suspend()
        return
      case 'usage':
        usage = addUsage(usage, entry.usage)
        return
      case 'run-end':
        return endRun(entry)
      case 'text-start':
      case 'text-end':
      case 'reasoning-start':
      case 'reasoning-end':
      case 'tool-input-end':
      case 'source':
      case 'file':
      case 'reasoning-file':
      case 'custom':
      case 'data':
      case 'stream-start':
      case 'response-metadata':
      case 'finish':
      case 'raw':
      case 'error':
      case 'tool-approval-request':
      case 'request':
      case 'response':
      case 'resume':
      case 'retry':
      case 'warning':
      case 'session-info':
      case 'cli-output':
        return
      default:
        entry satisfies never
    }
  }

  /** Emits text of a branch that was buffered until the previous branch ended. */
  function speak(entry: EntryOf<'step-start'> | EntryOf<'step-finish'>): void {
    think(thoughts.add(entry))
    say(words.add(entry))
  }

  function think(text: string): void {
    if (text !== '') output.reasoning(text)
  }

  function say(text: string): void {
    if (text === '') return
    hasText = true
    output.text(text)
  }

  /** What waits for a person, after the answer. The answer itself must stay JSON if that was asked for. */
  function tellWaiting(): void {
    const words = waiting.words()
    if (words === '') return
    if (isJson) output.refusal(words)
    else output.text(hasText ? `\n\n${words}` : words)
  }

  function suspend(): void {
    if (!waiting.isTold) return fail({ code: 'suspended', message: waits })
    const fault = calls.fault()
    if (fault !== undefined) return fail(fault)
    answer.state = 'complete'
    tellWaiting()
    output.finish(calls.handedOver() ? 'tool_calls' : 'stop', usage ?? noUsage, waiting.aside())
  }

  function trace(prompt: EntryOf<'prompt'>): void {
    if (prompts === undefined || isUnder(prompt.step, 'after')) return
    output.prompt(() => {
      const { stage, model } = prompt
      const options = { toolOutputMaxChars, isHidden: calls.isHidden }
      return { type: 'llm_prompt', stage, model, messages: toOpenAiMessages(prompts.messages(prompt), options) }
    })
  }

  function reset(path: string): void {
    const told = [words.reset(path), thoughts.reset(path), calls.shownUnder(path)]
    if (!told.includes(true)) return
    fail({ code: 'interrupted', message: 'The server was interrupted and lost this answer. Ask again.' })
  }

  function finish(whole: Usage): void {
    const fault = calls.fault() ?? ending.fault
    if (fault !== undefined) return fail(fault)
    answer.state = 'complete'
    if (!isJson) tellWaiting()
    output.finish(ending.reason, isAnew ? (usage ?? noUsage) : whole, waiting.aside())
  }

  function endRun({ outcome, error, output: value, usage }: EntryOf<'run-end'>): void {
    if (outcome !== 'completed') return fail(error ?? { code: outcome, message: `The run ended: ${outcome}.` })
    const isSaid = answering.started || calls.handedOver()
    if (!isSaid) say(outputText(value))
    ending.runEnd(calls.handedOver())
    finish(usage)
  }

  function fail(error: ErrorValue): void {
    if (answer.state !== 'open') return
    answer.state = 'complete'
    output.fail(error)
  }

  const answer = { state: 'open' as Projection['state'], apply: take, fail }
  return answer
}

const waits = 'The run waits for input that clients of this protocol cannot send.'

/**
 * Converts a run's entries to OpenAI output, in order: one state machine for the stream and for the single JSON, so that both
 * have the same content. The mapping is in `openai.ts`.
 */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { isUnder } from '../../part/path.ts'
import { addUsage, noUsage, type Usage } from '../../part/usage.ts'
import { createAnswerWords, outputText } from '../answer-words.ts'
import { createAgentsAbove } from '../../fold/agents-above.ts'
import { createAnswering } from '../../fold/answering.ts'
import { turnAt } from '../turn-end.ts'
import { createHeldText } from '../held-text.ts'
import { createOpenAiCalls, type OpenAiCalls } from './openai-calls.ts'
import { toOpenAiMessages, type ToOpenAiMessages } from './to-openai-messages.ts'
import type { OpenAiHead, OpenAiOptions, OpenAiOutput, OpenAiFinish } from './openai-output.ts'
import { createOpenAiWaiting, type OpenAiWaiting } from './openai-waiting.ts'
import { createPrompts, type Prompts } from './openai-prompts.ts'
import type { Projection, WireContext } from '../wire.ts'

export function createOpenAiAnswer(
  context: WireContext,
  options: Partial<OpenAiOptions>,
  output: OpenAiOutput,
): Projection {
  return new OpenAiProjection(context, options, output)
}

/** Class, not closures: one instance per answer. `private` and not `#`: see decisions/0028. */
class OpenAiProjection implements Projection {
  state: Projection['state'] = 'open'
  private readonly output: OpenAiOutput
  private readonly resumedAt: number
  private readonly from: number
  private readonly model: string | undefined
  private readonly toolOutputMaxChars: number
  private readonly textOnly: boolean
  private readonly answering = createAnswering()
  private readonly words = createAnswerWords()
  private readonly thoughts = createAnswerWords()
  private readonly held = createHeldText()
  private readonly waiting: OpenAiWaiting
  private readonly ending = createOpenAiEnding()
  private readonly calls: OpenAiCalls
  private readonly prompts: Prompts | undefined
  /** Only for traces. */
  private readonly above = createAgentsAbove()
  private head: OpenAiHead | undefined = undefined
  private isJson = false
  private isAnew = false
  private hasText = false
  /** Of this client's part of the answer, if it is not the whole. */
  private usage: Usage | undefined = undefined

  constructor(
    { resumedAt = 0, roles }: WireContext,
    { extensions = [], toolOutputMaxChars = 8000, model, from = 0, object }: Partial<OpenAiOptions>,
    output: OpenAiOutput,
  ) {
    const textOnly = object === 'text_completion'
    const showsServer = extensions.includes('tools')
    this.output = output
    this.resumedAt = resumedAt
    this.from = from
    this.model = model
    this.toolOutputMaxChars = toolOutputMaxChars
    this.textOnly = textOnly
    this.waiting = createOpenAiWaiting(textOnly, roles)
    this.calls = createOpenAiCalls({ textOnly, showsServer, toolOutputMaxChars, output })
    this.prompts = extensions.includes('trace') ? createPrompts() : undefined
  }

  apply(entry: Entry): void {
    const due = this.held.take(entry)
    if (due === undefined) this.encode(entry)
    else for (const each of due) this.encode(each)
  }

  /** The run continued in a new answer, which has only the entries after this one. */
  private beginAnew(): void {
    this.isAnew = true
    this.ending.restart()
    for (const each of [this.calls, this.words, this.thoughts]) each.restart()
    this.usage = undefined
    this.hasText = false
    if (this.head !== undefined) this.output.begin(this.head)
  }

  private encode(entry: Entry): void {
    if (this.state !== 'open') return
    if (this.from > 0 && entry.seq >= this.from && !this.isAnew) this.beginAnew()
    if (entry.type === 'response') {
      const request = this.waiting.request(entry.requestId)
      if (request !== undefined) this.calls.response(request, entry)
    }
    if (entry.type !== 'text-delta') this.waiting.apply(entry)
    if (this.prompts !== undefined) {
      this.prompts.apply(entry)
      this.above.apply(entry)
    }
    switch (entry.type) {
      case 'text-delta':
        if (!this.answering.has(entry.step)) return
        this.ending.said(entry.step)
        return this.say(this.words.add(entry))
      case 'reasoning-delta':
        if (this.textOnly || !this.answering.has(entry.step)) return
        return this.think(this.thoughts.add(entry))
      case 'tool-input-delta':
        return this.calls.inputDelta(entry)
      case 'run-start': {
        const { runId, timestamp, labels, agent } = entry
        this.calls.runStart(entry)
        this.isJson = entry.settings?.responseFormat?.type === 'json'
        this.head = {
          id: `${this.textOnly ? 'cmpl' : 'chatcmpl'}-${runId}`,
          created: Math.floor(timestamp / 1000),
          model: this.model ?? labels?.['model'] ?? agent,
        }
        return this.output.begin(this.head)
      }
      case 'step-start':
        this.answering.note(entry)
        if (entry.object === true) this.isJson = true
        this.calls.stepStart(entry)
        this.ending.stepStart(entry)
        return this.speak(entry)
      case 'step-finish':
        this.speak(entry)
        this.calls.stepFinish(entry.step)
        return this.ending.stepFinish(entry, this.calls.handedOver(entry.step))
      case 'step-reset':
        return this.reset(entry.step)
      case 'prompt':
        this.calls.prompt(entry)
        return this.trace(entry)
      case 'tool-input-start':
        return this.calls.inputStart(entry)
      case 'tool-call':
        return this.calls.call(entry)
      case 'tool-result':
        return this.calls.result(entry)
      case 'answer-end':
        this.ending.answerEnd(entry, this.calls.handedOver())
        return this.finish(entry.usage)
      case 'suspend':
        if (entry.seq >= this.resumedAt) this.suspend()
        return
      case 'message':
        if (turnAt(entry, this.resumedAt) === 'end') this.finish(this.usage ?? noUsage)
        return
      case 'usage':
        this.usage = addUsage(this.usage, entry.usage)
        return
      case 'run-end':
        return this.endRun(entry)
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
      case 'summarized':
      case 'cli-output':
        return
      default:
        entry satisfies never
    }
  }

  /** Emits text of a branch that was buffered until the previous branch ended. */
  private speak(entry: EntryOf<'step-start'> | EntryOf<'step-finish'>): void {
    this.think(this.thoughts.add(entry))
    this.say(this.words.add(entry))
  }

  private think(text: string): void {
    if (text !== '') this.output.reasoning(text)
  }

  private say(text: string): void {
    if (text === '') return
    this.hasText = true
    this.output.text(text)
  }

  /** The open requests in words, after the answer. The answer itself must stay JSON if JSON was requested. */
  private tellWaiting(): void {
    const words = this.waiting.words()
    if (words === '') return
    if (this.isJson) this.output.refusal(words)
    else this.output.text(this.hasText ? `\n\n${words}` : words)
  }

  private suspend(): void {
    if (!this.waiting.isTold) return this.fail({ code: 'suspended', message: waits })
    const fault = this.calls.fault()
    if (fault !== undefined) return this.fail(fault)
    this.state = 'complete'
    this.tellWaiting()
    this.output.finish(this.calls.handedOver() ? 'tool_calls' : 'stop', this.usage ?? noUsage, this.waiting.aside())
  }

  private trace(prompt: EntryOf<'prompt'>): void {
    const prompts = this.prompts
    if (prompts === undefined || isUnder(prompt.step, 'after')) return
    this.output.prompt(() => {
      const { stage, model } = prompt
      const isHidden: ToOpenAiMessages['isHidden'] = (call) => this.calls.isHidden(call)
      const options = { toolOutputMaxChars: this.toolOutputMaxChars, isHidden }
      const messages = toOpenAiMessages(prompts.messages(prompt), options)
      return { type: 'llm_prompt', stage, model, ...this.above.field(prompt.step), messages }
    })
  }

  private reset(path: string): void {
    const resets = [this.words.reset(path), this.thoughts.reset(path), this.calls.shownUnder(path)]
    if (!resets.includes(true)) return
    this.fail({ code: 'interrupted', message: 'The server was interrupted and lost this answer. Ask again.' })
  }

  private finish(whole: Usage): void {
    const fault = this.calls.fault() ?? this.ending.fault
    if (fault !== undefined) return this.fail(fault)
    this.state = 'complete'
    if (!this.isJson) this.tellWaiting()
    this.output.finish(this.ending.reason, this.isAnew ? (this.usage ?? noUsage) : whole, this.waiting.aside())
  }

  private endRun({ outcome, error, output: value, usage }: EntryOf<'run-end'>): void {
    if (outcome !== 'completed') return this.fail(error ?? { code: outcome, message: `The run ended: ${outcome}.` })
    const isSaid = this.answering.started || this.calls.handedOver()
    if (!isSaid) this.say(outputText(value))
    this.ending.runEnd(this.calls.handedOver())
    this.finish(usage)
  }

  fail(error: ErrorValue): void {
    if (this.state !== 'open') return
    this.state = 'complete'
    this.output.fail(error)
  }
}

const waits = 'The run waits for input that clients of this protocol cannot send.'

/**
 * The `finish_reason` of an answer. An answer that is not known to be complete is `length`: a truncated answer must never look
 * complete. With several answering steps, a truncated one decides.
 */
interface OpenAiEnding {
  readonly reason: OpenAiFinish
  /** The model finished with the reason `error`, without details. */
  readonly fault: ErrorValue | undefined
  /** Notes that text of the answer came from this path. */
  said(path: string): void
  stepStart(entry: EntryOf<'step-start'>): void
  /** `handedOver`: calls of this step were handed over to the client. */
  stepFinish(entry: EntryOf<'step-finish'>, handedOver: boolean): void
  answerEnd(entry: EntryOf<'answer-end'>, handedOver: boolean): void
  runEnd(handedOver: boolean): void
  /** The answer begins anew: earlier ends do not count. */
  restart(): void
}

function createOpenAiEnding(): OpenAiEnding {
  return new EndingFold()
}

/** Class, not closures: one instance per answer (decisions/0028). */
class EndingFold implements OpenAiEnding {
  reason: OpenAiFinish = 'stop'
  fault: ErrorValue | undefined = undefined
  readonly #answers = new Set<string>()
  readonly #heard = new Set<string>()
  #last: string | undefined = undefined

  said(path: string): void {
    if (path !== this.#last) this.#heard.add((this.#last = path))
  }

  stepStart({ step, answer }: EntryOf<'step-start'>): void {
    if (answer === true) this.#answers.add(step)
  }

  stepFinish({ step, finishReason, error }: EntryOf<'step-finish'>, handedOver: boolean): void {
    if (!this.#answers.has(step)) return
    if (error === undefined) {
      if (finishReason !== undefined) this.#note(finishReason, handedOver)
      return
    }
    // A branch may fail while others continue: its text is incomplete.
    for (const path of this.#heard) if (isUnder(path, step)) this.#note('interrupted', false)
  }

  answerEnd({ finishReason }: EntryOf<'answer-end'>, handedOver: boolean): void {
    this.#note(finishReason, handedOver)
  }

  runEnd(handedOver: boolean): void {
    this.#note('stop', handedOver)
  }

  #note(finishReason: string, handedOver: boolean): void {
    const worse = toReason(finishReason, handedOver)
    if (severity[worse] > severity[this.reason]) this.reason = worse
    if (finishReason === 'error')
      this.fault = { code: 'model-failed', message: 'The model ended its answer with an error.' }
  }

  restart(): void {
    this.reason = 'stop'
    this.fault = undefined
    this.#heard.clear()
    this.#last = undefined
  }
}

const severity: Record<OpenAiFinish, number> = { stop: 0, tool_calls: 1, content_filter: 2, length: 3 }

function toReason(finishReason: string, handedOver: boolean): OpenAiFinish {
  if (finishReason === 'stop') return handedOver ? 'tool_calls' : 'stop'
  // No call for the client: the step limit was reached while the server's tools were in use.
  if (finishReason === 'tool-calls') return handedOver ? 'tool_calls' : 'length'
  return finishReason === 'content-filter' ? 'content_filter' : 'length'
}

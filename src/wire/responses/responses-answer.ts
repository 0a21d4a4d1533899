/** Converts a run's entries to a response, for the stream and for the single JSON, so that both have the same content. The mapping is in `responses.ts`. */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { isUnder } from '../../part/path.ts'
import { addUsage, type Usage } from '../../part/usage.ts'
import { createAnswering } from '../../fold/answering.ts'
import { outputText } from '../answer-words.ts'
import { createHeldText } from '../held-text.ts'
import { createOpenAiWaiting } from '../openai/openai-waiting.ts'
import type { Projection, Sink, WireContext } from '../wire.ts'
import { ResponseCalls } from './response-calls.ts'
import { ResponseItems, type OpenText, type ResponsesEvent } from './response-items.ts'
import {
  echoOf,
  toResponseError,
  toResponseUsage,
  type ResponseObject,
  type ResponseStatus,
} from './response-object.ts'

/** Options of a reader of a response. All are optional. */
export interface ResponsesOptions {
  /** The model name in the response. Default: the run's label `model`, else the agent's id. */
  model?: string
  /** The client has the events up to this sequence number. Default: none. */
  after?: number
  /** The answer begins anew at this `seq`: the client has the entries before it from an earlier response. Default 0. */
  from?: number
  /** The calls that the server runs are no items. Default: they are. */
  serverTools?: 'shown' | 'hidden'
  /** Maximum length of a tool output in UTF-16 units; longer ones are truncated. Default 8000. */
  toolOutputMaxChars?: number
  /** The instructions are not for this reader. */
  hidesInstructions?: boolean
}

export interface ResponsesProjection extends Projection {
  /** The response as it is now. Undefined before `run-start`. */
  snapshot(): ResponseObject | undefined
}

export function createResponsesAnswer(
  sink: Sink<ResponsesEvent>,
  context: WireContext,
  options: Partial<ResponsesOptions>,
): ResponsesProjection {
  return new ResponseAnswer(sink, context, options)
}

interface Ending {
  status: Extract<ResponseStatus, 'completed' | 'incomplete' | 'failed'>
  reason?: string
  error?: ErrorValue
}

/** A class, not closures: one for each open stream. `private` and not `#`: see decisions/0028. */
class ResponseAnswer implements ResponsesProjection {
  state: Projection['state'] = 'open'
  private readonly options: Partial<ResponsesOptions>
  private readonly resumedAt: number
  private readonly items: ResponseItems
  private readonly answering = createAnswering()
  private readonly held = createHeldText()
  private readonly waiting: ReturnType<typeof createOpenAiWaiting>
  private readonly calls: ResponseCalls
  /** By the ids of their blocks. */
  private readonly texts = new Map<string, OpenText>()
  private start: EntryOf<'run-start'> | undefined = undefined
  private head: { [field: string]: unknown } = {}
  private readonly answers = new Set<string>()
  private isJson = false
  private isAnew = false
  private worst: { reason: string; severity: number } | undefined = undefined
  private fault: ErrorValue | undefined = undefined
  private usage: Usage | undefined = undefined
  private ended: Ending | undefined = undefined
  private completedAt: number | null = null

  constructor(sink: Sink<ResponsesEvent>, { resumedAt = 0, roles }: WireContext, options: Partial<ResponsesOptions>) {
    this.options = options
    this.resumedAt = resumedAt
    this.items = new ResponseItems(sink, options.after ?? -1)
    this.waiting = createOpenAiWaiting(false, roles)
    this.calls = new ResponseCalls({
      items: this.items,
      showsServer: options.serverTools !== 'hidden',
      toolOutputMaxChars: options.toolOutputMaxChars ?? 8000,
      isAnswer: (step) => this.answering.has(step),
    })
  }

  snapshot(): ResponseObject | undefined {
    return this.start === undefined ? undefined : this.response(true)
  }

  apply(entry: Entry): void {
    if (this.state !== 'open') return
    this.items.at(entry.seq)
    const due = this.held.take(entry)
    if (due === undefined) this.encode(entry)
    else for (const each of due) this.encode(each)
  }

  /** The run continued in a new answer, which has only the entries after this one. */
  private beginAnew(): void {
    this.isAnew = true
    this.items.restart()
    this.calls.restart()
    this.texts.clear()
    this.worst = undefined
    this.fault = undefined
    this.usage = undefined
    if (this.start !== undefined) this.begin()
  }

  private begin(): void {
    this.items.response('created', () => this.response())
    this.items.response('in_progress', () => this.response())
  }

  private encode(entry: Entry): void {
    if (this.state !== 'open') return
    const { from = 0 } = this.options
    if (from > 0 && entry.seq >= from && !this.isAnew) this.beginAnew()
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta':
        return this.write(entry)
      case 'text-start':
        if (this.answering.has(entry.step)) this.texts.set(entry.id, this.items.message(entry.step))
        return
      case 'reasoning-start':
        if (this.answering.has(entry.step)) this.texts.set(entry.id, this.items.reasoning(entry.step))
        return
      case 'text-end':
      case 'reasoning-end':
        return this.endBlock(entry.id)
      case 'tool-input-delta':
        return this.calls.inputDelta(entry)
      case 'response': {
        const request = this.waiting.request(entry.requestId)
        if (request !== undefined) this.calls.response(request, entry)
        return this.waiting.apply(entry)
      }
      case 'request':
      case 'resume':
        return this.waiting.apply(entry)
      case 'run-start':
        return this.runStart(entry)
      case 'step-start':
        this.waiting.apply(entry)
        this.answering.note(entry)
        if (entry.object === true) this.isJson = true
        if (entry.answer === true) this.answers.add(entry.step)
        if (entry.answer === true) this.checkHead(entry)
        return this.calls.stepStart(entry)
      case 'step-finish':
        this.waiting.apply(entry)
        this.calls.stepFinish(entry)
        return this.stepFinish(entry)
      case 'step-reset':
        this.waiting.apply(entry)
        return this.reset(entry)
      case 'prompt':
        return this.calls.prompt(entry)
      case 'tool-input-start':
        return this.calls.inputStart(entry)
      case 'tool-call':
        return this.calls.call(entry)
      case 'tool-result':
        this.waiting.apply(entry)
        return this.calls.result(entry)
      case 'source':
        return this.cite(entry)
      case 'usage':
        this.usage = addUsage(this.usage, entry.usage)
        return
      case 'answer-end':
        this.note(entry.finishReason, this.calls.handedOver())
        return this.finish(entry.timestamp, entry.usage)
      case 'suspend':
        if (entry.seq >= this.resumedAt) this.suspend(entry.timestamp)
        return
      case 'run-end':
        return this.endRun(entry)
      case 'tool-input-end':
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
      case 'message':
      case 'retry':
      case 'warning':
      case 'session-info':
      case 'cli-output':
        return
      default:
        entry satisfies never
    }
  }

  private runStart(entry: EntryOf<'run-start'>): void {
    const { runId, timestamp, labels, agent } = entry
    this.start = entry
    this.waiting.apply(entry)
    this.calls.runStart(entry)
    this.items.begin(runId)
    this.isJson = entry.settings?.responseFormat?.type === 'json'
    const { model = labels?.['model'] ?? agent, hidesInstructions = false } = this.options
    this.head = {
      id: `resp_${runId}`,
      object: 'response',
      created_at: Math.floor(timestamp / 1000),
      model,
      ...echoOf(entry, hidesInstructions),
    }
    this.begin()
  }

  private response(withOpen = false): ResponseObject {
    const { status = 'in_progress', reason, error } = this.ended ?? {}
    return {
      ...this.head,
      completed_at: this.completedAt,
      status,
      error: error === undefined ? null : toResponseError(error),
      incomplete_details: reason === undefined ? null : { reason },
      output: this.items.items(withOpen),
      usage: this.ended === undefined || this.usage === undefined ? null : toResponseUsage(this.usage),
    } as ResponseObject
  }

  private write({ id, delta }: EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>): void {
    const open = this.texts.get(id)
    if (open === undefined || delta === '') return
    open.text += delta
    open.say(delta)
  }

  private endBlock(id: string): void {
    const open = this.texts.get(id)
    if (open === undefined) return
    this.texts.delete(id)
    this.items.endText(open)
  }

  /** The text that is being written cites a page. Pages that are known before or after it have no place in the protocol. */
  private cite(entry: EntryOf<'source'>): void {
    if (entry.sourceType !== 'url') return
    const open = [...this.texts.values()].findLast(({ step, item }) => step === entry.step && item.type === 'message')
    if (open !== undefined) this.items.annotate(open, { url: entry.url, title: entry.title ?? entry.url })
  }

  /** A step returned a `Response` that is none of success: its text is no answer. */
  private checkHead({ head }: EntryOf<'step-start'>): void {
    if (head === undefined || (head.status >= 200 && head.status <= 299)) return
    this.fault = { code: 'bad-response', message: `The agent answered with the status ${head.status}.` }
  }

  private stepFinish({ step, finishReason, error }: EntryOf<'step-finish'>): void {
    if (!this.answers.has(step)) return
    if (error === undefined) {
      if (finishReason !== undefined) this.note(finishReason, this.calls.handedOver(step))
    } else if (this.items.items().length > 0) {
      // A branch may fail while others continue.
      this.note('interrupted', false)
    }
  }

  private note(finishReason: string, handedOver: boolean): void {
    if (finishReason === 'error')
      this.fault = { code: 'model-failed', message: 'The model ended its answer with an error.' }
    const reason = incompleteReason(finishReason, handedOver)
    if (reason === undefined) return
    const severity = reason === 'content_filter' ? 1 : 2
    if (this.worst === undefined || severity > this.worst.severity) this.worst = { reason, severity }
  }

  private reset(entry: EntryOf<'step-reset'>): void {
    const { step: path } = entry
    const why = { code: 'interrupted', message: 'The server was interrupted and lost this answer. Ask again.' }
    // A client may have begun to run it.
    if (this.calls.reset(entry)) return this.fail(why)
    for (const [id, open] of this.texts) if (isUnder(open.step, path)) this.texts.delete(id)
    this.items.close(why, (step) => isUnder(step, path))
  }

  private suspend(at: number): void {
    if (!this.waiting.isTold) return this.fail({ code: 'suspended', message: waits }, at)
    this.complete(at)
  }

  /** The open requests in words, after the answer. The answer itself must stay JSON if JSON was requested. */
  private complete(at: number): void {
    const fault = this.calls.fault() ?? this.fault
    if (fault !== undefined) return this.fail(fault, at)
    const words = this.waiting.words()
    if (words !== '') this.items.say('', words, this.isJson)
    const { reason } = this.worst ?? {}
    this.end(reason === undefined ? { status: 'completed' } : { status: 'incomplete', reason }, at)
  }

  private finish(at: number, whole: Usage): void {
    if (!this.isAnew) this.usage = whole
    this.complete(at)
  }

  private endRun({ outcome, error, output, usage, timestamp }: EntryOf<'run-end'>): void {
    this.usage = this.isAnew ? this.usage : usage
    if (outcome === 'completed') {
      const isSaid = this.answering.started || this.calls.handedOver()
      const text = isSaid ? '' : outputText(output)
      if (text !== '') this.items.say('', text)
      return this.complete(timestamp)
    }
    const reason = stopped.get(outcome)
    if (reason === undefined)
      return this.fail(error ?? { code: outcome, message: `The run ended: ${outcome}.` }, timestamp)
    this.items.close(error ?? { code: outcome, message: `The run ended: ${outcome}.` })
    this.end({ status: 'incomplete', reason }, timestamp)
  }

  fail(error: ErrorValue, at?: number): void {
    if (this.state !== 'open') return
    this.items.close(error)
    this.end({ status: 'failed', error }, at)
  }

  private end(ending: Ending, at?: number): void {
    this.state = 'complete'
    this.ended = ending
    if (ending.status === 'completed' && at !== undefined) this.completedAt = Math.floor(at / 1000)
    this.items.response(ending.status, () => this.response())
    this.items.end()
  }
}

const waits = 'The run waits for input that clients of this protocol cannot send.'

/** Ends that are no failure of the run: a client that takes them for one would start another. */
const stopped: ReadonlyMap<string, string> = new Map([
  ['budget-exceeded', 'budget_exceeded'],
  ['timed-out', 'timed_out'],
  ['aborted', 'cancelled'],
])

/** An answer that is not known to be complete must not look so. */
function incompleteReason(finishReason: string, handedOver: boolean): string | undefined {
  switch (finishReason) {
    case 'stop':
    case 'error':
      return undefined
    case 'tool-calls':
      // No call for the client: the step limit was reached while the server's tools were in use.
      return handedOver ? undefined : 'max_steps'
    case 'length':
      return 'max_output_tokens'
    case 'content-filter':
      return 'content_filter'
    default:
      return finishReason.replaceAll('-', '_')
  }
}

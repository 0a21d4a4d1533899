/**
 * Converts a run's entries to an answer that is a list of items: texts, thoughts and calls, in the order in which they begin (Responses, Messages).
 * What belongs to the answer, how it ended, and why it failed is decided here; a subclass sends the items in the form of its protocol.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import { isUnder } from '../part/path.ts'
import { addUsage, type Usage } from '../part/usage.ts'
import { createAnswering } from '../fold/answering.ts'
import { outputText } from './answer-words.ts'
import { createHeldText } from './held-text.ts'
import { ItemCalls, type CallsOutput } from './item-calls.ts'
import { createOpenAiWaiting, type OfferedApproval } from './openai/openai-waiting.ts'
import type { Projection, WireContext } from './wire.ts'

/** Options that the readers of all these protocols have. All are optional. */
export interface ItemOptions {
  /** The model name in the answer. Default: the run's label `model`, else the agent's id. */
  model?: string
  /** The answer begins anew at this `seq`: the client has the entries before it from an earlier answer. Default 0. */
  from?: number
  /** The calls that the server runs are no items. Default: they are. */
  serverTools?: 'shown' | 'hidden'
  /** Maximum length of a tool output in UTF-16 units; longer ones are truncated. Default 8000. */
  toolOutputMaxChars?: number
}

/** How an answer ended. `reason`: why it is not complete, in words with `_`. */
export type ItemEnding =
  | { status: 'completed' }
  | { status: 'incomplete'; reason: string; error?: ErrorValue }
  | { status: 'failed'; error: ErrorValue }

/** A class, not closures: one for each open stream. `private` and not `#`: see decisions/0028. */
export abstract class ItemAnswer<Text extends { readonly step: string }, Call, ServerCall> implements Projection {
  state: Projection['state'] = 'open'
  protected start: EntryOf<'run-start'> | undefined = undefined
  /** The answer must be JSON. */
  protected isJson = false
  /** Of this answer's model calls so far, or of the whole. */
  protected usage: Usage | undefined = undefined
  private readonly resumedAt: number
  private readonly from: number
  private readonly answering = createAnswering()
  private readonly held = createHeldText()
  private readonly waiting: ReturnType<typeof createOpenAiWaiting>
  private readonly calls: ItemCalls<Call, ServerCall>
  /** By the ids of their blocks. */
  private readonly texts = new Map<string, Text>()
  private readonly answers = new Set<string>()
  private isAnew = false
  private worst: { reason: string; severity: number } | undefined = undefined
  private fault: ErrorValue | undefined = undefined

  constructor(
    { resumedAt = 0, roles }: WireContext,
    { from = 0, serverTools, toolOutputMaxChars = 8000 }: ItemOptions,
    output: CallsOutput<Call, ServerCall>,
  ) {
    this.resumedAt = resumedAt
    this.from = from
    this.waiting = createOpenAiWaiting(false, roles)
    const isAnswer = (step: string) => this.answering.has(step)
    this.calls = new ItemCalls({ output, showsServer: serverTools !== 'hidden', toolOutputMaxChars, isAnswer })
  }

  /** The run has started: the answer begins. */
  protected abstract begin(start: EntryOf<'run-start'>): void
  /** A new answer of the same run begins, which has none of the items so far. */
  protected abstract beginAgain(): void
  protected abstract openText(step: string): Text
  protected abstract openReasoning(step: string): Text
  protected abstract write(text: Text, delta: string): void
  protected abstract endText(text: Text): void
  /** A text cites a page. */
  protected abstract cite(texts: Iterable<Text>, source: Extract<EntryOf<'source'>, { sourceType: 'url' }>): void
  /** Words that are known as a whole. `refuses`: they are for people, where the answer must be JSON. */
  protected abstract say(words: string, refuses: boolean): void
  /** The run waits for approvals, which the words that follow explain to people. */
  protected ask(_approvals: readonly OfferedApproval[]): void {}
  /** Ends the texts and the server's calls that are open, of all steps or of some. Calls for the client are never done half. */
  protected abstract close(why: ErrorValue, has?: (step: string) => boolean): void
  /** Whether anything was sent as an item. */
  protected abstract hasItems(): boolean
  /** The last event. `at`: epoch ms. */
  protected abstract finish(ending: ItemEnding, at?: number): void
  /** Every entry, before it is encoded. */
  protected note(_entry: Entry): void {}

  /** Whether the client has calls to run. */
  protected handedOver(): boolean {
    return this.calls.handedOver()
  }

  apply(entry: Entry): void {
    if (this.state !== 'open') return
    this.note(entry)
    const due = this.held.take(entry)
    if (due === undefined) this.encode(entry)
    else for (const each of due) this.encode(each)
  }

  /** The run continued in a new answer, which has only the entries after this one. */
  private beginAnew(): void {
    this.isAnew = true
    this.texts.clear()
    this.worst = undefined
    this.fault = undefined
    this.usage = undefined
    this.beginAgain()
    this.calls.restart()
  }

  private encode(entry: Entry): void {
    if (this.state !== 'open') return
    if (this.from > 0 && entry.seq >= this.from && !this.isAnew) this.beginAnew()
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta':
        return this.addText(entry)
      case 'text-start':
        if (this.answering.has(entry.step)) this.texts.set(entry.id, this.openText(entry.step))
        return
      case 'reasoning-start':
        if (this.answering.has(entry.step)) this.texts.set(entry.id, this.openReasoning(entry.step))
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
        if (entry.sourceType === 'url') this.cite(this.texts.values(), entry)
        return
      case 'usage':
        this.usage = addUsage(this.usage, entry.usage)
        return
      case 'answer-end':
        this.noteReason(entry.finishReason, this.calls.hasHandedOver())
        return this.endAnswer(entry.timestamp, entry.usage)
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
      case 'summarized':
      case 'cli-output':
        return
      default:
        entry satisfies never
    }
  }

  private runStart(entry: EntryOf<'run-start'>): void {
    this.start = entry
    this.waiting.apply(entry)
    this.calls.runStart(entry)
    this.isJson = entry.settings?.responseFormat?.type === 'json'
    this.begin(entry)
  }

  private addText({ id, delta }: EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>): void {
    const open = this.texts.get(id)
    if (open !== undefined && delta !== '') this.write(open, delta)
  }

  private endBlock(id: string): void {
    const open = this.texts.get(id)
    if (open === undefined) return
    this.texts.delete(id)
    this.endText(open)
  }

  /** A step returned a `Response` that is none of success: its text is no answer. */
  private checkHead({ head }: EntryOf<'step-start'>): void {
    if (head === undefined || (head.status >= 200 && head.status <= 299)) return
    this.fault = { code: 'bad-response', message: `The agent answered with the status ${head.status}.` }
  }

  private stepFinish({ step, finishReason, error }: EntryOf<'step-finish'>): void {
    if (!this.answers.has(step)) return
    if (error === undefined) {
      if (finishReason !== undefined) this.noteReason(finishReason, this.calls.hasHandedOver(step))
    } else if (this.hasItems()) {
      // A branch may fail while others continue.
      this.noteReason('interrupted', false)
    }
  }

  private noteReason(finishReason: string, handedOver: boolean): void {
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
    this.close(why, (step) => isUnder(step, path))
  }

  private suspend(at: number): void {
    if (!this.waiting.isTold) return this.fail({ code: 'suspended', message: waits }, at)
    this.complete(at)
  }

  /** The open requests in words, after the answer. The answer itself must stay JSON if JSON was requested. */
  private complete(at: number): void {
    const fault = this.calls.fault() ?? this.fault
    if (fault !== undefined) return this.fail(fault, at)
    if (this.waiting.isTold) {
      this.close({ code: 'suspended', message: unapproved })
      this.ask(this.waiting.offered())
    }
    const words = this.waiting.words()
    if (words !== '') this.say(words, this.isJson)
    if (this.state !== 'open') return
    const { reason } = this.worst ?? {}
    this.end(reason === undefined ? { status: 'completed' } : { status: 'incomplete', reason }, at)
  }

  private endAnswer(at: number, whole: Usage): void {
    if (!this.isAnew) this.usage = whole
    this.complete(at)
  }

  private endRun({ outcome, error, output, usage, timestamp }: EntryOf<'run-end'>): void {
    this.usage = this.isAnew ? this.usage : usage
    if (outcome === 'completed') {
      const isSaid = this.answering.started || this.calls.handedOver()
      const text = isSaid ? '' : outputText(output)
      if (text !== '') this.say(text, false)
      return this.complete(timestamp)
    }
    const reason = stopped.get(outcome)
    if (reason === undefined)
      return this.fail(error ?? { code: outcome, message: `The run ended: ${outcome}.` }, timestamp)
    const why = error ?? { code: outcome, message: `The run ended: ${outcome}.` }
    this.close(why)
    this.end({ status: 'incomplete', reason, error: why }, timestamp)
  }

  fail(error: ErrorValue, at?: number): void {
    if (this.state !== 'open') return
    this.close(error)
    this.end({ status: 'failed', error }, at)
  }

  private end(ending: ItemEnding, at?: number): void {
    // How an earlier answer ended is no matter of this one.
    if (this.from > 0 && !this.isAnew) return
    this.state = 'complete'
    this.finish(ending, at)
  }
}

const unapproved = 'The call waits for approval and has not run.'
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

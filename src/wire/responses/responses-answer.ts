/** Converts a run's entries to a response, for the stream and for the single JSON, so that both have the same content. The mapping is in `responses.ts`. */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { ItemAnswer, type ItemEnding, type ItemOptions } from '../item-answer.ts'
import type { OfferedApproval } from '../openai/openai-waiting.ts'
import type { Projection, Sink, WireContext } from '../wire.ts'
import { ResponseCalls } from './response-calls.ts'
import { ResponseItems, type CallItem, type OpenItem, type OpenText, type ResponsesEvent } from './response-items.ts'
import {
  echoOf,
  requestOf,
  toResponseError,
  toResponseUsage,
  type McpCallItem,
  type ResponseObject,
} from './response-object.ts'

/** Options of a reader of a response. All are optional. */
export interface ResponsesOptions extends ItemOptions {
  /** The client has the events up to this sequence number. Default: none. */
  after?: number
  /** Sealed, for the tokens of reasoning (`part/reasoning-token.ts`). Without it, items of reasoning have none. */
  reasoning?: string
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
  const items = new ResponseItems(sink, options)
  return new ResponseAnswer(items, new ResponseCalls(items), context, options)
}

/** A class, not closures: one for each open stream. `private` and not `#`: see decisions/0028. */
class ResponseAnswer
  extends ItemAnswer<OpenText, OpenItem<CallItem>, OpenItem<McpCallItem>>
  implements ResponsesProjection
{
  private readonly options: Partial<ResponsesOptions>
  private readonly items: ResponseItems
  private readonly named: ResponseCalls
  private head: { [field: string]: unknown } = {}
  private ended: ItemEnding | undefined = undefined
  private completedAt: number | null = null

  constructor(items: ResponseItems, calls: ResponseCalls, context: WireContext, options: Partial<ResponsesOptions>) {
    super(context, options, calls)
    this.options = options
    this.items = items
    this.named = calls
  }

  snapshot(): ResponseObject | undefined {
    return this.start === undefined ? undefined : this.response(true)
  }

  protected override note(entry: Entry): void {
    this.items.at(entry.seq)
  }

  protected override begin(start: EntryOf<'run-start'>): void {
    const { runId, timestamp, labels, agent } = start
    this.named.runStart(start)
    this.items.begin(runId)
    const { model = labels?.['model'] ?? agent, hidesInstructions = false } = this.options
    this.head = {
      id: `resp_${runId}`,
      object: 'response',
      created_at: Math.floor(timestamp / 1000),
      model,
      ...echoOf(start, hidesInstructions),
    }
    this.announce()
  }

  protected override beginAgain(): void {
    this.items.restart()
    if (this.start !== undefined) this.announce()
  }

  private announce(): void {
    this.items.response('created', () => this.response())
    this.items.response('in_progress', () => this.response())
  }

  private response(withOpen = false): ResponseObject {
    const { ended } = this
    const error = ended?.status === 'failed' ? ended.error : undefined
    const reason = ended?.status === 'incomplete' ? ended.reason : undefined
    return {
      ...this.head,
      completed_at: this.completedAt,
      status: ended?.status ?? 'in_progress',
      error: error === undefined ? null : toResponseError(error),
      incomplete_details: reason === undefined ? null : { reason },
      output: this.items.items(withOpen),
      usage: ended === undefined || this.usage === undefined ? null : toResponseUsage(this.usage),
    } as ResponseObject
  }

  protected override openText(step: string): OpenText {
    return this.items.message(step)
  }

  protected override openReasoning(step: string): OpenText {
    return this.items.reasoning(step)
  }

  protected override write(open: OpenText, delta: string): void {
    open.add(delta)
    open.say(delta)
  }

  protected override endText(open: OpenText): void {
    this.items.endText(open)
  }

  /** Pages that are known before or after the text that cites them have no place in the protocol. */
  protected override cite(
    texts: Iterable<OpenText>,
    { step: path, url, title = url }: Extract<EntryOf<'source'>, { sourceType: 'url' }>,
  ): void {
    const open = [...texts].findLast(({ step, item }) => step === path && item.type === 'message')
    if (open !== undefined) this.items.annotate(open, { url, title })
  }

  protected override say(words: string, refuses: boolean): void {
    this.items.say('', words, refuses)
  }

  /** Clients throw on an item of a server that they have not asked for. */
  protected override ask(approvals: readonly OfferedApproval[]): void {
    const { approvals: taken = [] } = requestOf(this.start)
    for (const each of approvals) if (taken.includes(each.agent)) this.items.approvalRequest(each.step, each)
  }

  protected override close(why: ErrorValue, has?: (step: string) => boolean): void {
    this.items.close(why, has)
  }

  protected override hasItems(): boolean {
    return this.items.items().length > 0
  }

  protected override finish(ending: ItemEnding, at?: number): void {
    this.ended = ending
    if (ending.status === 'completed' && at !== undefined) this.completedAt = Math.floor(at / 1000)
    this.items.response(ending.status, () => this.response())
    this.items.end()
  }
}

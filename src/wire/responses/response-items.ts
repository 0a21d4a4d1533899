/**
 * Writes the output of a response: each item is added, written and done, in this order. An item has the next `output_index` when it is added, so
 * that there are no gaps, and an id with its number in the run.
 *
 * Sequence numbers are 64 times the entry's `seq` and the number of the event in the entry, or the last number and 1 if that is larger: the same for
 * every reader of the run, whenever it reads.
 */
import type { ErrorValue } from '../../part/error.ts'
import { growing } from '../../fold/tool-loop.ts'
import { reasoningToken } from '../../part/reasoning-token.ts'
import type { OfferedApproval } from '../openai/openai-waiting.ts'
import type { Sink } from '../wire.ts'
import type {
  CustomToolCallItem,
  FunctionCallItem,
  ItemStatus,
  McpApprovalRequestItem,
  McpCallItem,
  MessageItem,
  OutputText,
  ReasoningItem,
  ResponseItem,
  ResponseObject,
  UrlCitation,
} from './response-object.ts'

/** An event of the protocol. */
export interface ResponsesEvent {
  type: string
  sequence_number: number
  [field: string]: unknown
}

/** Begins the ids of approval requests, before the id of the run's request. */
export const approvalPrefix = 'mcpr_'

/** The numbers of one entry's events. */
export const perEntry = 64

/** An item that is not done. */
export interface OpenItem<Item extends ResponseItem = ResponseItem> {
  readonly index: number
  readonly item: Item
  /** The path of the step that writes it. */
  readonly step: string
}

/** A text or a thought: its deltas are the most frequent events. */
export interface OpenText extends OpenItem<MessageItem | ReasoningItem> {
  text: string
  /** Appends to the text. */
  readonly add: (delta: string) => void
  readonly say: (delta: string, number?: number) => void
  readonly annotations: UrlCitation[]
}

export type CallItem = FunctionCallItem | CustomToolCallItem

/** A class, not closures: one for each open stream (decisions/0028). */
export class ResponseItems {
  /** Of the items that are done. Null stands for one that is open. */
  output: (ResponseItem | null)[] = []
  private readonly sink: Sink<ResponsesEvent>
  /** Events up to this number are known to the client. */
  private readonly after: number
  /** Sealed, for the tokens of reasoning. Without it, items of reasoning have none. */
  private readonly sealed: string | undefined
  private run = ''
  /** Counts the items of the run, also over answers that begin anew. */
  private count = 0
  private thoughts = 0
  private base = 0
  private last = -1
  private readonly open = new Map<ResponseItem, OpenItem>()

  constructor(sink: Sink<ResponsesEvent>, { after = -1, reasoning }: { after?: number; reasoning?: string }) {
    this.sink = sink
    this.after = after
    this.sealed = reasoning
  }

  /** The events of an entry follow. */
  at(seq: number): void {
    this.base = seq * perEntry
  }

  begin(run: string): void {
    this.run = run
  }

  /** The answer begins anew, and has none of the items so far. */
  restart(): void {
    this.output = []
    this.open.clear()
  }

  private number(): number {
    const { base, last } = this
    return (this.last = base > last ? base : last + 1)
  }

  private send(type: string, fields: object): void {
    const number = this.number()
    if (number > this.after) this.sink.send({ type, sequence_number: number, ...fields })
  }

  response(type: string, response: () => ResponseObject): void {
    const number = this.number()
    // The object is large.
    if (number <= this.after || this.sink.muted) return
    this.sink.send({ type: `response.${type}`, sequence_number: number, response: response() })
  }

  private id(prefix: string): string {
    return `${prefix}_${this.run}_${this.count++}`
  }

  private add<Item extends ResponseItem>(item: Item, step: string): OpenItem<Item> {
    const index = this.output.length
    this.output.push(null)
    const open = { index, item, step }
    this.open.set(item, open)
    this.send('response.output_item.added', { output_index: index, item: { ...item } })
    return open
  }

  private done({ index, item }: OpenItem): void {
    this.output[index] = item
    this.open.delete(item)
    this.send('response.output_item.done', { output_index: index, item })
  }

  /** Sends a delta of this kind each time. */
  private sayer(type: string, place: object, tail: object): (delta: string) => void {
    const say = this.sink.prepare((delta, number) => ({ type, sequence_number: number, ...place, delta, ...tail }))
    return (delta) => {
      const number = this.number()
      if (number > this.after) say(delta, number)
    }
  }

  message(step: string): OpenText {
    const item: MessageItem = {
      type: 'message',
      id: this.id('msg'),
      status: 'in_progress',
      role: 'assistant',
      content: [],
    }
    const open = this.add(item, step)
    const place = { item_id: item.id, output_index: open.index, content_index: 0 }
    this.send('response.content_part.added', { ...place, part: outputText('', []) })
    return this.writing(open, this.sayer('response.output_text.delta', place, { logprobs: [] }))
  }

  private writing(open: OpenItem<MessageItem | ReasoningItem>, say: OpenText['say']): OpenText {
    const written = { text: '' }
    const text: OpenText = Object.assign(written, { ...open, add: growing(written), say, annotations: [] })
    this.open.set(open.item, text)
    return text
  }

  reasoning(step: string): OpenText {
    const item: ReasoningItem = { type: 'reasoning', id: this.id('rs'), status: 'in_progress', summary: [] }
    const part = this.thoughts++
    if (this.sealed !== undefined) item.encrypted_content = reasoningToken(this.sealed, part)
    const open = this.add(item, step)
    const place = { item_id: item.id, output_index: open.index, summary_index: 0 }
    this.send('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } })
    return this.writing(open, this.sayer('response.reasoning_summary_text.delta', place, {}))
  }

  annotate(open: OpenText, cited: { url: string; title: string }): void {
    const { item, index, text, annotations } = open
    const place = { item_id: item.id, output_index: index, content_index: 0 }
    const annotation: UrlCitation = {
      type: 'url_citation',
      ...cited,
      start_index: text.length,
      end_index: text.length,
    }
    this.send('response.output_text.annotation.added', {
      ...place,
      annotation_index: annotations.push(annotation) - 1,
      annotation,
    })
  }

  endText(open: OpenText, status: ItemStatus = 'completed'): void {
    const { item, index, text, annotations } = open
    const place = { item_id: item.id, output_index: index }
    item.status = status
    if (item.type === 'message') {
      const part = outputText(text, annotations)
      item.content = [part]
      this.send('response.output_text.done', { ...place, content_index: 0, text, logprobs: [] })
      this.send('response.content_part.done', { ...place, content_index: 0, part })
    } else {
      const part = { type: 'summary_text' as const, text }
      item.summary = [part]
      this.send('response.reasoning_summary_text.done', { ...place, summary_index: 0, text })
      this.send('response.reasoning_summary_part.done', { ...place, summary_index: 0, part })
    }
    this.done(open)
  }

  /** A message that is known as a whole. `refuses`: the answer must be JSON, and this is none. */
  say(step: string, text: string, refuses = false): void {
    if (!refuses) {
      const open = this.message(step)
      open.text = text
      open.say(text)
      return this.endText(open)
    }
    const item: MessageItem = {
      type: 'message',
      id: this.id('msg'),
      status: 'in_progress',
      role: 'assistant',
      content: [],
    }
    const open = this.add(item, step)
    const place = { item_id: item.id, output_index: open.index, content_index: 0 }
    this.send('response.content_part.added', { ...place, part: { type: 'refusal', refusal: '' } })
    this.send('response.refusal.delta', { ...place, delta: text })
    this.send('response.refusal.done', { ...place, refusal: text })
    item.status = 'completed'
    item.content = [{ type: 'refusal', refusal: text }]
    this.send('response.content_part.done', { ...place, part: item.content[0] })
    this.done(open)
  }

  /** A call for the client. It is done when it is handed over, and never if it is not: a client runs what is done. */
  call(
    step: string,
    named: Pick<FunctionCallItem, 'call_id' | 'name' | 'namespace'>,
    isText: boolean,
  ): OpenItem<CallItem> {
    const { namespace } = named
    const name = { call_id: named.call_id, name: named.name, ...(namespace !== undefined && { namespace }) }
    const status = 'in_progress'
    return isText
      ? this.add<CallItem>({ type: 'custom_tool_call', id: this.id('ctc'), status, ...name, input: '' }, step)
      : this.add<CallItem>({ type: 'function_call', id: this.id('fc'), status, ...name, arguments: '' }, step)
  }

  callDelta({ item, index }: OpenItem<CallItem>, delta: string): void {
    const kind = item.type === 'function_call' ? 'function_call_arguments' : 'custom_tool_call_input'
    this.send(`response.${kind}.delta`, { item_id: item.id, output_index: index, delta })
  }

  /** The arguments are complete. */
  callWritten({ item, index }: OpenItem<CallItem>, text: string): void {
    const place = { item_id: item.id, output_index: index }
    if (item.type === 'function_call') {
      item.arguments = text
      this.send('response.function_call_arguments.done', { ...place, name: item.name, arguments: text })
    } else {
      item.input = text
      this.send('response.custom_tool_call_input.done', { ...place, input: text })
    }
  }

  endCall(open: OpenItem<CallItem>): void {
    open.item.status = 'completed'
    this.done(open)
  }

  /** A call that the server runs. */
  serverCall(step: string, label: string, name: string, json: string): OpenItem<McpCallItem> {
    const open = this.add<McpCallItem>(
      {
        type: 'mcp_call',
        id: this.id('mcp'),
        status: 'in_progress',
        approval_request_id: null,
        server_label: label,
        name,
        arguments: '',
        output: null,
        error: null,
      },
      step,
    )
    const place = { item_id: open.item.id, output_index: open.index }
    this.send('response.mcp_call.in_progress', place)
    open.item.arguments = json
    this.send('response.mcp_call_arguments.done', { ...place, arguments: json })
    return open
  }

  endServerCall(open: OpenItem<McpCallItem>, result: { output: string } | { error: string }): void {
    const { item, index } = open
    const failed = 'error' in result
    item.status = failed ? 'failed' : 'completed'
    Object.assign(item, result)
    this.send(`response.mcp_call.${failed ? 'failed' : 'completed'}`, { item_id: item.id, output_index: index })
    this.done(open)
  }

  approvalRequest(step: string, { requestId, agent, toolName, input }: OfferedApproval): void {
    const item: McpApprovalRequestItem = {
      type: 'mcp_approval_request',
      id: `${approvalPrefix}${requestId}`,
      server_label: agent,
      name: toolName,
      arguments: JSON.stringify(input) ?? '{}',
    }
    this.done(this.add(item, step))
  }

  /** Ends the texts and the server's calls that are open, of all steps or of some. Calls for the client are never done half. */
  close(why: ErrorValue, has: (step: string) => boolean = () => true): void {
    for (const open of this.open.values()) {
      if (!has(open.step)) continue
      if ('say' in open) this.endText(open as OpenText, 'incomplete')
      else if (open.item.type === 'mcp_call') {
        this.endServerCall(open as OpenItem<McpCallItem>, { error: why.message })
      }
    }
  }

  /** The items that are done, and those that are open as they are now, if they are asked for. */
  items(withOpen = false): ResponseItem[] {
    const open = new Map([...this.open.values()].map((each) => [each.index, each]))
    return this.output.flatMap((item, index) => {
      if (item !== null) return [item]
      const each = withOpen ? open.get(index) : undefined
      return each === undefined ? [] : [shownOpen(each)]
    })
  }

  end(): void {
    this.sink.end()
  }
}

function shownOpen(open: OpenItem): ResponseItem {
  const { item } = open
  if (!('say' in open)) return { ...item }
  const { text, annotations } = open as OpenText
  if (item.type === 'message') return { ...item, content: [outputText(text, annotations)] }
  return { ...(item as ReasoningItem), summary: [{ type: 'summary_text', text }] }
}

function outputText(text: string, annotations: UrlCitation[]): OutputText {
  return { type: 'output_text', text, annotations, logprobs: [] }
}

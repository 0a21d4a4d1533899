/** OpenAI's responses. The tools that OpenAI runs are in `hosted.ts`. */
import type { JSONObject, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { reasonOf, type ReaderOptions } from './answer-reader.ts'
import { openAICitation, openAISource } from './citations.ts'
import { argumentsOf, fieldsOf, isFields, listOf, numberOf, parsed, textOf, type Fields } from './fields.ts'
import { HostedTools, type OpenCall } from './hosted.ts'
import type { Repeat } from './sse.ts'
import { openAIUsage } from './usage.ts'

export class ResponsesReader extends HostedTools {
  private readonly own = this.options.call.providerOptions?.['openai']
  /** The server stores reasoning, so its text ends without the encrypted form. */
  private readonly isStored = this.own?.['store'] === true
  private readonly logprobs: unknown[] | undefined = this.own?.['logprobs'] ? [] : undefined
  /** Names of the caller's tools. */
  private readonly tools: ReadonlySet<string> = new Set(this.options.call.tools?.map(({ name }) => name))
  /** By output index. Servers that imitate OpenAI's change an item's id between events. */
  private readonly itemIds = new Map<number, string>()
  /** Summaries by their index, and whether they can end. Without storage they end with the item. */
  private readonly reasonings = new Map<string, { encrypted: unknown; summaries: Map<number, boolean> }>()
  /** Items whose text has come in deltas. */
  private readonly said = new Set<string>()
  private annotations: Fields[] = []
  private cited: Fields[] = []
  private phase: string | undefined = undefined
  private responseId: string | null = null
  private readonly about: Fields = {}

  constructor(options: ReaderOptions) {
    super(options)
    for (const part of options.call.prompt.flatMap(({ role, content }) => (role === 'assistant' ? content : []))) {
      const approval = part.providerOptions?.['openai']?.['approvalRequestId']
      if (part.type === 'tool-call' && approval) this.asked.set(approval, part.toolCallId)
    }
  }

  protected override read(event: Fields, name: string): Repeat | undefined {
    const type = textOf(event['type']) ?? name
    const index = numberOf(event['output_index'])
    const delta = event['delta']
    switch (type) {
      case 'response.output_text.delta':
      case 'response.refusal.delta': {
        if (type === 'response.refusal.delta') this.hasRefusal = true
        const id = this.itemIdOf(event)
        this.said.add(id)
        const repeat = this.repeated('delta', delta, (text) => this.emit({ type: 'text-delta', id, delta: text }))
        return event['logprobs'] && this.logprobs?.push(event['logprobs']) ? undefined : repeat
      }
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta': {
        const open = this.calls.get(index ?? -1)
        const repeat = open && this.repeated('delta', argumentsOf(delta), (text) => this.addInput(open, text))
        return open?.isWithheld ? undefined : repeat
      }
      case 'response.function_call_arguments.done':
      case 'response.custom_tool_call_input.done': {
        const open = this.calls.get(index ?? -1)
        if (open) open.input ??= argumentsOf(event['arguments'] ?? event['input'])
        return undefined
      }
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.readThought(event, type)
      case 'response.output_item.added':
        return void this.startItem(index ?? 0, fieldsOf(event['item']) ?? {})
      case 'response.output_item.done':
        return void this.endItem(index ?? 0, fieldsOf(event['item']) ?? {})
      case 'response.reasoning_summary_part.added':
        return void this.startSummary(this.itemIdOf(event), numberOf(event['summary_index']) ?? 0)
      case 'response.reasoning_summary_part.done':
        return void this.endSummary(this.itemIdOf(event), numberOf(event['summary_index']) ?? 0)
      case 'response.output_text.annotation.added':
        return void this.annotate(fieldsOf(event['annotation']) ?? {})
      default:
        return void this.readOther(event, type)
    }
  }

  private readOther(event: Fields, type: string): void {
    const response = fieldsOf(event['response']) ?? {}
    if (type === 'response.created') this.startResponse(response)
    else if (/^response\.(completed|incomplete|failed|cancelled|done)$/.test(type)) this.endResponse(response, type)
    else if (event['object'] === 'response') {
      // The whole answer.
      this.startResponse(event)
      this.endResponse(event, `response.${textOf(event['status']) ?? 'completed'}`)
    } else if (this.responseId === null && listOf(event['choices']).length > 0 && !event['error']) {
      this.fail({ message: 'it speaks the chat protocol. Use the protocol "openai-chat" for this endpoint.' })
    } else if (!this.readHosted(event, type) && !silent.test(type) && !event['error']) {
      this.keep(`event ${type}`, event)
    }
  }

  private itemIdOf({ item_id: id, output_index: index }: Fields): string {
    return this.itemIds.get(numberOf(index) ?? -1) ?? textOf(id) ?? '0'
  }

  private openai(fields: Fields): { providerMetadata: SharedV4ProviderMetadata } {
    return { providerMetadata: { openai: fields as JSONObject } }
  }

  private startResponse({ id, created_at: created, model }: Fields): void {
    if (this.responseId !== null) return
    this.responseId = textOf(id) ?? ''
    this.respond(id, model, created)
  }

  /** A text, a thought or a call begins. */
  private startItem(index: number, item: Fields): void {
    const id = textOf(item['id']) ?? String(index)
    switch (item['type']) {
      case 'message': {
        const phase = (this.phase = textOf(item['phase']))
        this.itemIds.set(index, id)
        this.annotations = []
        const said = this.openai({ itemId: id, ...(phase !== undefined && { phase }) })
        return this.emit({ type: 'text-start', id, ...said })
      }
      case 'reasoning': {
        const encrypted = item['encrypted_content'] ?? null
        this.itemIds.set(index, id)
        this.reasonings.set(id, { encrypted, summaries: new Map([[0, false]]) })
        return this.thought('start', id, 0, { reasoningEncryptedContent: encrypted })
      }
      case 'function_call':
      case 'custom_tool_call': {
        const toolCallId = textOf(item['call_id']) || id
        const toolName = textOf(item['name']) ?? ''
        const isText = item['type'] === 'custom_tool_call'
        const open: OpenCall = { toolCallId, toolName, item }
        this.calls.set(index, open)
        // Models sometimes call an internal tool that stands for several calls.
        if (toolName === 'parallel' && !this.tools.has(toolName)) open.isWithheld = true
        else this.emit({ type: 'tool-input-start', id: toolCallId, toolName, ...(isText && { inputEncoding: 'text' }) })
        return
      }
      default:
        this.startHosted(index, id, item)
    }
  }

  private endItem(index: number, item: Fields): void {
    switch (item['type']) {
      case 'message':
        return this.endText(index, item)
      case 'reasoning':
        return this.endReasoning(index, item)
      case 'function_call':
      case 'custom_tool_call':
        return this.endCall(index, item)
      default:
        this.endHosted(index, textOf(item['id']) ?? String(index), item)
    }
  }

  private endText(index: number, item: Fields): void {
    const isOpen = this.itemIds.has(index)
    const itemId = this.itemIdOf({ item_id: item['id'], output_index: index })
    // Servers without deltas send the whole content here.
    const content = listOf(item['content'])
    const whole = content.map((part) => textOf(part['text']) ?? textOf(part['refusal']) ?? '').join('')
    if (!isOpen) this.startItem(index, { ...item, id: itemId })
    if (whole !== '' && !this.said.has(itemId)) {
      this.emit({ type: 'text-delta', id: itemId, delta: whole })
      for (const part of content) for (const each of listOf(part['annotations'])) this.annotate(each)
    }
    const annotations = this.annotations
    const cited = annotations.filter(({ type }) => type !== 'file_path')
    const phase = textOf(item['phase']) ?? this.phase
    this.phase = undefined
    this.itemIds.delete(index)
    this.emit({
      type: 'text-end',
      id: itemId,
      ...(cited.length > 0 && { citations: cited.map(openAICitation) }),
      ...this.openai({ itemId, ...(phase && { phase }), ...(annotations.length > 0 && { annotations }) }),
    })
  }

  private annotate(annotation: Fields): void {
    this.annotations.push(annotation)
    const isLate = annotation['type'] === 'url_citation' || annotation['type'] === 'file_citation'
    if (isLate) this.cited.push(annotation)
    else this.emit(openAISource(annotation, this.generateId()))
  }

  private readThought(event: Fields, type: string): Repeat | undefined {
    const id = this.itemIdOf(event)
    const summary = numberOf(event['summary_index']) ?? 0
    const said = this.openai({ itemId: id })
    this.said.add(`${id} ${type}`)
    // Open models send their thoughts, and possibly a summary as well.
    if (type === 'response.reasoning_text.delta' && this.said.has(`${id} response.reasoning_summary_text.delta`))
      return undefined
    return this.repeated('delta', event['delta'], (delta) =>
      this.emit({ type: 'reasoning-delta', id: `${id}:${summary}`, delta, ...said }),
    )
  }

  private thought(end: 'start' | 'end', itemId: string, summary: number, more: Fields = {}): void {
    this.emit({ type: `reasoning-${end}`, id: `${itemId}:${summary}`, ...this.openai({ itemId, ...more }) })
  }

  private startSummary(itemId: string, summary: number): void {
    const open = this.reasonings.get(itemId)
    // The first one starts with its item.
    if (open === undefined || summary === 0) return
    for (const [other, canEnd] of open.summaries) if (canEnd) this.conclude(open.summaries, itemId, other)
    open.summaries.set(summary, false)
    this.thought('start', itemId, summary, { reasoningEncryptedContent: open.encrypted })
  }

  private endSummary(itemId: string, summary: number): void {
    const open = this.reasonings.get(itemId)
    if (open === undefined) return
    if (this.isStored) this.conclude(open.summaries, itemId, summary)
    else open.summaries.set(summary, true)
  }

  private conclude(summaries: Map<number, boolean>, itemId: string, summary: number): void {
    summaries.delete(summary)
    this.thought('end', itemId, summary)
  }

  private endReasoning(index: number, item: Fields): void {
    const itemId = this.itemIdOf({ item_id: item['id'], output_index: index })
    if (!this.reasonings.has(itemId)) this.startItem(index, { ...item, id: itemId })
    const parts = [...listOf(item['summary']), ...listOf(item['content'])]
    const whole = parts.map((part) => textOf(part['text']) ?? '').join('\n')
    const hasCome = [...this.said].some((key) => key.startsWith(`${itemId} response.reasoning`))
    if (whole !== '' && !hasCome) {
      this.emit({ type: 'reasoning-delta', id: `${itemId}:0`, delta: whole, ...this.openai({ itemId }) })
    }
    const more = { reasoningEncryptedContent: item['encrypted_content'] ?? null }
    for (const summary of this.reasonings.get(itemId)?.summaries.keys() ?? [])
      this.thought('end', itemId, summary, more)
    this.reasonings.delete(itemId)
    this.itemIds.delete(index)
  }

  private addInput(open: OpenCall, delta: string): void {
    open.input = (open.input ?? '') + delta
    if (open.isWithheld !== true) this.emit({ type: 'tool-input-delta', id: open.toolCallId, delta })
  }

  private tellWithheld({ isWithheld, toolCallId: id, toolName, input = '' }: OpenCall): void {
    if (isWithheld !== true) return
    this.emit({ type: 'tool-input-start', id, toolName })
    this.emit({ type: 'tool-input-delta', id, delta: input })
  }

  /** Expands a call that stands for several. If one of them is not of a declared tool, the call is emitted unchanged. */
  private expand({ toolCallId, toolName }: OpenCall, itemId: unknown, input: string): boolean {
    const calls = listOf(fieldsOf(parsed(input))?.['tool_uses']).map(({ recipient_name: recipient, parameters }) => ({
      name: /^functions\.(.+)$/.exec(String(recipient))?.[1] ?? '',
      args: fieldsOf(parameters),
    }))
    const { length: count } = calls
    if (count === 0 || !calls.every(({ name, args }) => this.tools.has(name) && args)) return false
    for (const [index, { name, args }] of calls.entries()) {
      const id = `${toolCallId}_${index}`
      const of = { itemId, toolCallId, toolName, ...(index === 0 && { input }), index, count }
      this.emit({ type: 'tool-input-start', id, toolName: name })
      this.emit({ type: 'tool-input-delta', id, delta: argumentsOf(args) })
      this.call(id, name, argumentsOf(args), this.openai({ parallelToolCall: of }))
    }
    return true
  }

  private endCall(index: number, item: Fields): void {
    if (!this.calls.has(index)) this.startItem(index, item)
    const open = this.calls.get(index)!
    const { toolCallId: id, toolName, item: begun, input: sentInput = '' } = open
    this.calls.delete(index)
    this.hasCalls = true
    const isText = item['type'] === 'custom_tool_call'
    const given = isText ? JSON.stringify(item['input'] ?? sentInput) : argumentsOf(item['arguments'])
    open.input ??= given
    if (open.isWithheld && this.expand(open, item['id'], given || sentInput)) return
    this.tellWithheld(open)
    const { namespace, caller } = item
    const isAsync = item['async'] ?? begun?.['async'] ?? undefined
    const named = typeof namespace === 'string' ? { namespace } : undefined
    const program = { type: 'program', callerId: fieldsOf(caller)?.['caller_id'] }
    const metadata = this.openai({
      itemId: item['id'],
      ...(isAsync !== undefined && { async: isAsync }),
      ...named,
      ...(isFields(caller) && { caller: caller['type'] === 'program' ? program : caller }),
    })
    this.call(id, textOf(item['name']) ?? toolName, given || sentInput, metadata, named && this.openai(named))
  }

  private endResponse(response: Fields, type: string): void {
    // A server that sends only the whole response.
    if (!this.hasContent) for (const [at, item] of listOf(response['output']).entries()) this.endItem(at, item)
    const { usage, service_tier: tier, reasoning, prompt_cache_diagnostics: diagnostics, error } = response
    if (isFields(usage)) this.usage = openAIUsage(usage)
    const { context } = fieldsOf(reasoning) ?? {}
    if (typeof tier === 'string') this.about['serviceTier'] = tier
    if (typeof context === 'string') this.about['reasoningContext'] = context
    if (diagnostics) this.about['promptCacheDiagnostics'] = diagnostics
    const reason = textOf(fieldsOf(response['incomplete_details'])?.['reason'])
    const isFailed = /failed$|cancelled$/.test(type) || /^(failed|cancelled)$/.test(String(response['status']))
    if (error) return this.fail({ type, error })
    if (isFailed) return this.ends('error', reason ?? type.replace('response.', ''))
    // Calls without an end event.
    for (const [index, { item, toolCallId }] of reason === undefined ? [...this.calls] : []) {
      const whole = listOf(response['output']).find((each) => each['call_id'] === toolCallId)
      if (item !== undefined) this.endCall(index, whole ?? { ...item, arguments: '', input: undefined })
    }
    const unified = reason === undefined ? this.impliedReason() : reasonOf(reason)
    this.ends(unified === 'other' && this.hasCalls ? 'tool-calls' : unified, reason)
    this.finish()
  }

  protected override close(): void {
    for (const open of this.calls.values()) this.tellWithheld(open)
    // Sources only if the search itself named none.
    for (const annotation of this.cited) {
      const isKnown = annotation['type'] === 'url_citation' ? this.hasPages : this.hasFiles
      if (!isKnown) this.emit(openAISource(annotation, this.generateId()))
    }
    const logprobs = this.logprobs?.length ? { logprobs: this.logprobs } : {}
    this.metadata = { openai: { responseId: this.responseId, ...logprobs, ...this.about } as JSONObject }
  }
}

/** Progress events, or events that repeat earlier deltas. */
const silent =
  /^response\.(in_progress|queued|content_part\.|output_text\.done|refusal\.done|reasoning_|[a-z_]+_call\.)/

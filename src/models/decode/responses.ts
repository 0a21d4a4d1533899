/** OpenAI's responses. The tools that OpenAI runs are in `hosted.ts`. */
import type { JSONObject, LanguageModelV4CallOptions, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { Reason, ReaderOptions } from './answer-reader.ts'
import { openAICitation, openAISource } from './citations.ts'
import { argumentsOf, fieldsOf, isFields, listOf, numberOf, textOf, type Fields } from './fields.ts'
import { HostedTools, type OpenCall } from './hosted.ts'
import type { Repeat } from './sse.ts'
import { responsesUsage } from './usage.ts'

interface Reasoning {
  encrypted: unknown
  /** By the index of the summary. A server that keeps nothing sends the encrypted form with the end of the item. */
  summaries: Map<number, 'active' | 'can-conclude'>
}

export class ResponsesReader extends HostedTools {
  /** The server keeps reasoning, so its text ends without the encrypted form. */
  readonly #isStored: boolean
  /** By output index. Servers that only resemble OpenAI's change an item's id between events. */
  readonly #itemIds = new Map<number, string>()
  readonly #reasonings = new Map<string, Reasoning>()
  /** Items whose text has come in deltas. */
  readonly #said = new Set<string>()
  #annotations: Fields[] = []
  #cited: Fields[] = []
  #phase: string | undefined = undefined
  #hasCalls = false
  #hasRefusal = false
  #responseId: string | null = null
  readonly #about: Fields = {}

  constructor(options: ReaderOptions & { call: Pick<LanguageModelV4CallOptions, 'providerOptions'> }) {
    super(options)
    const { providerOptions } = options.call
    this.#isStored = providerOptions?.['openai']?.['store'] === true
  }

  protected override read(event: Fields, name: string): Repeat | undefined {
    const type = textOf(event['type']) ?? name
    const index = numberOf(event['output_index'])
    const delta = event['delta']
    switch (type) {
      case 'response.output_text.delta':
      case 'response.refusal.delta': {
        if (type === 'response.refusal.delta') this.#hasRefusal = true
        const id = this.#itemIdOf(event)
        this.#said.add(id)
        return this.repeated('delta', delta, (text) => this.emit({ type: 'text-delta', id, delta: text }))
      }
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta': {
        const open = this.calls.get(index ?? -1)
        return open && this.repeated('delta', argumentsOf(delta), (text) => this.#addInput(open, text))
      }
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#readThought(event, type)
      case 'response.output_item.added':
        return void this.#startItem(index ?? 0, fieldsOf(event['item']) ?? {})
      case 'response.output_item.done':
        return void this.#endItem(index ?? 0, fieldsOf(event['item']) ?? {})
      case 'response.reasoning_summary_part.added':
        return void this.#startSummary(this.#itemIdOf(event), numberOf(event['summary_index']) ?? 0)
      case 'response.reasoning_summary_part.done':
        return void this.#endSummary(this.#itemIdOf(event), numberOf(event['summary_index']) ?? 0)
      case 'response.output_text.annotation.added':
        return void this.#annotate(fieldsOf(event['annotation']) ?? {})
      case 'response.created':
        return void this.#startResponse(fieldsOf(event['response']) ?? {})
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
      case 'response.done':
        return void this.#endResponse(fieldsOf(event['response']) ?? {}, type)
      case 'error':
        return void this.fail(event)
      case 'ping':
      case 'keepalive':
        return undefined
      default:
        return void this.#readOther(event, type)
    }
  }

  #readOther(event: Fields, type: string): void {
    if (event['object'] === 'response') {
      // The whole answer.
      this.#startResponse(event)
      this.#endResponse(event, `response.${textOf(event['status']) ?? 'completed'}`)
    } else if (this.#responseId === null && listOf(event['choices']).length > 0 && !event['error']) {
      this.fail({ message: 'it speaks the chat protocol. Use the protocol "openai-chat" for this endpoint.' })
    } else if (!this.readHosted(event, type) && !silent.test(type) && !event['error']) {
      this.keep(`event ${type}`, event)
    }
  }

  #itemIdOf({ item_id: id, output_index: index }: Fields): string {
    return this.#itemIds.get(numberOf(index) ?? -1) ?? textOf(id) ?? '0'
  }

  #metadata(fields: Fields): { providerMetadata: SharedV4ProviderMetadata } {
    return { providerMetadata: { openai: fields as JSONObject } }
  }

  #startResponse({ id, created_at: created, model }: Fields): void {
    if (this.#responseId !== null) return
    this.#responseId = textOf(id) ?? ''
    const seconds = numberOf(created)
    const timestamp = seconds === undefined ? undefined : new Date(seconds * 1000)
    this.emit({ type: 'response-metadata', id: textOf(id), timestamp, modelId: textOf(model) })
  }

  /** A text, a thought or a call begins. */
  #startItem(index: number, item: Fields): void {
    const id = textOf(item['id']) ?? String(index)
    switch (item['type']) {
      case 'message': {
        const phase = (this.#phase = textOf(item['phase']))
        this.#itemIds.set(index, id)
        this.#annotations = []
        const said = this.#metadata({ itemId: id, ...(phase !== undefined && { phase }) })
        return this.emit({ type: 'text-start', id, ...said })
      }
      case 'reasoning': {
        const encrypted = item['encrypted_content'] ?? null
        this.#itemIds.set(index, id)
        this.#reasonings.set(id, { encrypted, summaries: new Map([[0, 'active']]) })
        return this.#startThought(id, 0, encrypted)
      }
      case 'function_call':
      case 'custom_tool_call': {
        const toolCallId = textOf(item['call_id']) || id
        const toolName = textOf(item['name']) ?? ''
        const isText = item['type'] === 'custom_tool_call'
        const open: OpenCall = { toolCallId, toolName, isAsync: item['async'] ?? undefined }
        this.calls.set(index, open)
        this.emit({ type: 'tool-input-start', id: toolCallId, toolName, ...(isText && { inputEncoding: 'text' }) })
        return
      }
      default:
        this.startHosted(index, id, item)
    }
  }

  /** A text, a thought or a call is complete. */
  #endItem(index: number, item: Fields): void {
    switch (item['type']) {
      case 'message':
        return this.#endText(index, item)
      case 'reasoning':
        return this.#endReasoning(index, item)
      case 'function_call':
      case 'custom_tool_call':
        return this.#endCall(index, item)
      default:
        if (!this.endHosted(index, item)) this.keep(`item ${String(item['type'])}`, item)
    }
  }

  #endText(index: number, item: Fields): void {
    const isOpen = this.#itemIds.has(index)
    const itemId = this.#itemIdOf({ item_id: item['id'], output_index: index })
    // Servers that send no deltas say all of it here.
    const content = listOf(item['content'])
    const whole = content.map((part) => textOf(part['text']) ?? textOf(part['refusal']) ?? '').join('')
    if (!isOpen) this.#startItem(index, { ...item, id: itemId })
    if (whole !== '' && !this.#said.has(itemId)) {
      this.emit({ type: 'text-delta', id: itemId, delta: whole })
      for (const part of content) for (const each of listOf(part['annotations'])) this.#annotate(each)
    }
    const annotations = this.#annotations
    const cited = annotations.filter(({ type }) => type !== 'file_path')
    const phase = textOf(item['phase']) ?? this.#phase
    this.#phase = undefined
    this.#itemIds.delete(index)
    this.emit({
      type: 'text-end',
      id: itemId,
      ...(cited.length > 0 && { citations: cited.map(openAICitation) }),
      ...this.#metadata({ itemId, ...(phase && { phase }), ...(annotations.length > 0 && { annotations }) }),
    })
  }

  #annotate(annotation: Fields): void {
    this.#annotations.push(annotation)
    const isLate = annotation['type'] === 'url_citation' || annotation['type'] === 'file_citation'
    if (isLate) this.#cited.push(annotation)
    else this.emit(openAISource(annotation, this.generateId()))
  }

  #readThought(event: Fields, type: string): Repeat | undefined {
    const id = this.#itemIdOf(event)
    const summary = numberOf(event['summary_index']) ?? 0
    const said = this.#metadata({ itemId: id })
    this.#said.add(`${id} ${type}`)
    // Open models send their thoughts, and maybe a summary as well.
    if (type === 'response.reasoning_text.delta' && this.#said.has(`${id} response.reasoning_summary_text.delta`))
      return undefined
    return this.repeated('delta', event['delta'], (delta) =>
      this.emit({ type: 'reasoning-delta', id: `${id}:${summary}`, delta, ...said }),
    )
  }

  #startThought(itemId: string, summary: number, encrypted: unknown): void {
    const said = this.#metadata({ itemId, reasoningEncryptedContent: encrypted })
    this.emit({ type: 'reasoning-start', id: `${itemId}:${summary}`, ...said })
  }

  #startSummary(itemId: string, summary: number): void {
    const open = this.#reasonings.get(itemId)
    // The first starts with its item.
    if (open === undefined || summary === 0) return
    for (const [other, state] of open.summaries) if (state === 'can-conclude') this.#conclude(open, itemId, other)
    open.summaries.set(summary, 'active')
    this.#startThought(itemId, summary, open.encrypted)
  }

  #endSummary(itemId: string, summary: number): void {
    const open = this.#reasonings.get(itemId)
    if (open === undefined) return
    if (this.#isStored) this.#conclude(open, itemId, summary)
    else open.summaries.set(summary, 'can-conclude')
  }

  #conclude({ summaries }: Reasoning, itemId: string, summary: number): void {
    summaries.delete(summary)
    this.emit({ type: 'reasoning-end', id: `${itemId}:${summary}`, ...this.#metadata({ itemId }) })
  }

  #endReasoning(index: number, item: Fields): void {
    const itemId = this.#itemIdOf({ item_id: item['id'], output_index: index })
    if (!this.#reasonings.has(itemId)) this.#startItem(index, { ...item, id: itemId })
    const parts = [...listOf(item['summary']), ...listOf(item['content'])]
    const whole = parts.map((part) => textOf(part['text']) ?? '').join('\n')
    const hasCome = [...this.#said].some((key) => key.startsWith(`${itemId} response.reasoning`))
    if (whole !== '' && !hasCome) {
      this.emit({ type: 'reasoning-delta', id: `${itemId}:0`, delta: whole, ...this.#metadata({ itemId }) })
    }
    const encrypted = item['encrypted_content'] ?? null
    for (const summary of this.#reasonings.get(itemId)?.summaries.keys() ?? []) {
      const said = this.#metadata({ itemId, reasoningEncryptedContent: encrypted })
      this.emit({ type: 'reasoning-end', id: `${itemId}:${summary}`, ...said })
    }
    this.#reasonings.delete(itemId)
    this.#itemIds.delete(index)
  }

  #addInput(open: OpenCall, delta: string): void {
    open.input = (open.input ?? '') + delta
    this.emit({ type: 'tool-input-delta', id: open.toolCallId, delta })
  }

  #endCall(index: number, item: Fields): void {
    if (!this.calls.has(index)) this.#startItem(index, item)
    const { toolCallId: id, toolName, isAsync: was, input: told = '' } = this.calls.get(index)!
    this.calls.delete(index)
    this.#hasCalls = true
    const isText = item['type'] === 'custom_tool_call'
    const given = isText ? JSON.stringify(item['input'] ?? told) : argumentsOf(item['arguments'])
    const { namespace, caller } = item
    const isAsync = item['async'] ?? was ?? undefined
    const named = typeof namespace === 'string' ? { namespace } : undefined
    this.emit({ type: 'tool-input-end', id, ...(named && this.#metadata(named)) })
    const program = { type: 'program', callerId: fieldsOf(caller)?.['caller_id'] }
    const metadata = this.#metadata({
      itemId: item['id'],
      ...(isAsync !== undefined && { async: isAsync }),
      ...named,
      ...(isFields(caller) && { caller: caller['type'] === 'program' ? program : caller }),
    })
    this.emit({
      type: 'tool-call',
      toolCallId: id,
      toolName: textOf(item['name']) ?? toolName,
      input: given || told,
      ...metadata,
    })
  }

  #endResponse(response: Fields, type: string): void {
    // A server that sends nothing but the whole.
    if (!this.hasContent) for (const [at, item] of listOf(response['output']).entries()) this.#endItem(at, item)
    const { usage, service_tier: tier, reasoning, prompt_cache_diagnostics: diagnostics, error } = response
    if (isFields(usage)) this.usage = responsesUsage(usage)
    if (typeof tier === 'string') this.#about['serviceTier'] = tier
    const context = fieldsOf(reasoning)?.['context']
    if (typeof context === 'string') this.#about['reasoningContext'] = context
    if (diagnostics) this.#about['promptCacheDiagnostics'] = diagnostics
    const reason = textOf(fieldsOf(response['incomplete_details'])?.['reason'])
    const isFailed = /failed$|cancelled$/.test(type) || /^(failed|cancelled)$/.test(String(response['status']))
    if (error) return this.fail({ type, error })
    if (isFailed) return this.ends('error', reason ?? type.replace('response.', ''))
    this.ends(this.#unified(reason), reason)
    this.finish()
  }

  #unified(reason: string | undefined): Reason {
    switch (reason) {
      case undefined:
        // The tools run even if the model refuses: the refusal stays in the text.
        if (this.#hasCalls) return 'tool-calls'
        return this.#hasRefusal ? 'content-filter' : 'stop'
      case 'max_output_tokens':
        return 'length'
      case 'content_filter':
        return 'content-filter'
      default:
        return this.#hasCalls ? 'tool-calls' : 'other'
    }
  }

  protected override impliedReason(): Reason {
    return this.#unified(undefined)
  }

  protected override close(): void {
    // Sources only where the search itself named none.
    for (const annotation of this.#cited) {
      const isKnown = annotation['type'] === 'url_citation' ? this.hasPages : this.hasFiles
      if (!isKnown) this.emit(openAISource(annotation, this.generateId()))
    }
    this.metadata = { openai: { responseId: this.#responseId, ...this.#about } as JSONObject }
  }
}

/** Events that only say how far a part has come, or repeat what its deltas have said. */
const silent =
  /^response\.(in_progress|queued|content_part\.|output_text\.done|refusal\.done|function_call_arguments\.done|reasoning_|custom_tool_call_input\.done|[a-z_]+_call\.)/

/** Anthropic's messages. */
import type { JSONObject, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { AnswerReader, reasonOf } from './answer-reader.ts'
import { anthropicCitation, anthropicSource, documentsOf, type CitedDocument } from './citations.ts'
import {
  argumentsOf,
  camelCased,
  fieldsOf,
  isFields,
  listOf,
  named,
  parsed,
  picked,
  textOf,
  withoutNulls,
  type Fields,
} from './fields.ts'
import type { Repeat } from './sse.ts'
import { anthropicUsage } from './usage.ts'

interface AnthropicBlock {
  type: 'text' | 'reasoning' | 'redacted' | 'call'
  /** The id of the part; for a call, its own id. */
  id: string
  citations: Fields[]
  toolName: string
  input: string
  isFirst: boolean
  /** Becomes the `type` in the arguments: the tools that run code are one tool for the user. */
  inputType: string | undefined
  more: { providerExecuted?: true; providerMetadata?: SharedV4ProviderMetadata }
}

const codeTools: ReadonlyMap<unknown, string> = new Map([
  ['text_editor_code_execution', 'text_editor_code_execution'],
  ['bash_code_execution', 'bash_code_execution'],
  ['code_execution', 'programmatic-tool-call'],
])

export class AnthropicReader extends AnswerReader {
  private readonly documents: CitedDocument[] = documentsOf(this.options.call.prompt)
  private readonly blocks = new Map<number, AnthropicBlock>()
  private readonly searchTools = new Map<unknown, string>()
  private readonly mcpCalls = new Map<unknown, { toolName: string; providerMetadata: SharedV4ProviderMetadata }>()
  private index = 0
  private messageId: string | undefined = undefined
  private stopReason: string | undefined = undefined
  private hasSearchResults = false
  /** Cited pages: emitted as sources only if the search's own results do not come. */
  private readonly citedPages: Fields[] = []
  private counts: Fields = {}
  private rawUsage: Fields | undefined = undefined
  /** Provider metadata of the message besides its content. */
  private about: Fields = {}

  protected override read(event: Fields, name: string): Repeat | undefined {
    const type = textOf(event['type']) ?? name
    if (typeof event['index'] === 'number') this.index = event['index']
    switch (type) {
      case 'content_block_delta':
        return this.readDelta(this.index, fieldsOf(event['delta']) ?? {})
      case 'content_block_start':
        return void this.startBlock(this.index, fieldsOf(event['content_block']) ?? {})
      case 'content_block_stop':
        return void this.stopBlock(this.index)
      case 'message_start':
        return void this.startMessage(fieldsOf(event['message']) ?? {})
      case 'message_delta':
        return void this.readEnd(event)
      case 'message':
        // The whole answer.
        this.startMessage(event)
        return void this.readEnd({ delta: event, usage: event['usage'] })
      case 'message_stop':
        this.ends(this.stopReason === undefined ? this.impliedReason() : reasonOf(this.stopReason), this.stopReason)
        return void this.finish()
      default:
        return void (event['error'] ? undefined : this.keep(`event ${type}`, event))
    }
  }

  private startMessage(message: Fields): void {
    const { id, model, usage, content, container, service_tier: tier } = message
    if (this.messageId !== undefined) {
      if (textOf(id) !== this.messageId) this.fail({ message: 'a second answer began inside the first' })
      return
    }
    this.messageId = textOf(id) ?? ''
    this.stopReason = textOf(message['stop_reason'])
    this.rawUsage = isFields(usage) ? { ...usage } : undefined
    this.counts = { ...fieldsOf(usage), output_tokens: 0 }
    this.about = {
      stopSequence: null,
      contextManagement: null,
      container: containerOf(container),
      ...picked({ service_tier: tier, ...fieldsOf(usage) }, 'service_tier'),
      ...picked(message, 'input_transformations'),
    }
    this.respond(id, model)
    const said = { id: id ?? null, model: model ?? null, usage: this.rawUsage ?? null } as JSONObject
    this.emit({ type: 'custom', kind: 'anthropic.message_start', providerMetadata: { anthropic: said } })
    for (const [index, block] of listOf(content).entries()) {
      this.startBlock(index, block)
      const open = this.blocks.get(index)
      if (open?.type === 'call') this.emit({ type: 'tool-input-delta', id: open.id, delta: open.input || '{}' })
      this.stopBlock(index)
    }
  }

  private startBlock(index: number, block: Fields): void {
    const id = String(index)
    this.stopBlock(index)
    switch (block['type']) {
      case 'text':
        return this.begin(index, 'text', block['text'])
      case 'thinking':
        this.begin(index, 'reasoning', block['thinking'])
        if (block['signature']) this.sign(id, block['signature'])
        return
      case 'redacted_thinking':
        return this.begin(index, 'redacted', '', { redactedData: textOf(block['data']) })
      case 'compaction':
        return this.begin(index, 'text', block['content'], picked(block, 'type', 'signature'))
      case 'tool_use':
      case 'server_tool_use':
        return this.startCall(index, block)
      case 'mcp_tool_use': {
        const { id: toolCallId, name, input, server_name: serverName } = block
        const call = {
          toolName: textOf(name) ?? '',
          providerMetadata: { anthropic: { type: 'mcp-tool-use', serverName } as JSONObject },
        }
        this.mcpCalls.set(toolCallId, call)
        const made = { toolCallId: String(toolCallId), input: argumentsOf(input ?? {}), ...call }
        return this.emit({ type: 'tool-call', providerExecuted: true, dynamic: true, ...made })
      }
      case 'fallback': {
        const anthropic = picked(block, 'type', 'from', 'to') as JSONObject
        return this.emit({ type: 'custom', kind: 'anthropic.fallback', providerMetadata: { anthropic } })
      }
      default:
        if (String(block['type']).endsWith('_tool_result')) return this.readResult(block, String(block['type']))
        this.keep(`block ${String(block['type'])}`, block)
    }
  }

  private open(index: number, type: AnthropicBlock['type'], id: string): AnthropicBlock {
    const call = { toolName: '', input: '', isFirst: true, inputType: undefined, more: {} }
    const block: AnthropicBlock = { type, id, citations: [], ...call }
    this.blocks.set(index, block)
    return block
  }

  private begin(index: number, type: 'text' | 'reasoning' | 'redacted', text: unknown, anthropic?: Fields): void {
    const { id } = this.open(index, type, String(index))
    const part = type === 'redacted' ? 'reasoning' : type
    const said = anthropic && { providerMetadata: { anthropic: anthropic as JSONObject } }
    this.emit({ type: `${part}-start`, id, ...said })
    if (typeof text === 'string' && text !== '') this.emit({ type: `${part}-delta`, id, delta: text })
  }

  private startCall(index: number, { id, name, input, type, caller }: Fields): void {
    const toolName = textOf(name) ?? ''
    const toolCallId = textOf(id) || this.generateId()
    const block = this.open(index, 'call', toolCallId)
    const executed = type === 'server_tool_use' ? { providerExecuted: true as const } : undefined
    block.inputType = executed && codeTools.get(name)
    block.toolName = block.inputType === undefined ? toolName : 'code_execution'
    // An empty object means that the arguments come in deltas.
    if (typeof input === 'string' || Object.keys(fieldsOf(input) ?? {}).length > 0) block.input = argumentsOf(input)
    block.more = { ...executed, ...metadataOf(caller) }
    this.hasCalls ||= executed === undefined
    if (toolName.startsWith('tool_search')) this.searchTools.set(id, toolName)
    this.emit({ type: 'tool-input-start', id: toolCallId, toolName: block.toolName, ...executed })
  }

  private readDelta(index: number, delta: Fields): Repeat | undefined {
    const block = this.blocks.get(index)
    const id = String(index)
    const { text, thinking, partial_json: json, citation } = delta
    switch (delta['type']) {
      case 'text_delta':
        return this.repeated('text', text, (said) => this.emit({ type: 'text-delta', id, delta: said }))
      case 'thinking_delta':
        return this.repeated('thinking', thinking, (said) => this.emit({ type: 'reasoning-delta', id, delta: said }))
      case 'input_json_delta':
        if (block?.type !== 'call') return void this.keep('arguments without a call', delta)
        return this.repeated('partial_json', argumentsOf(json), (said) => this.addInput(block, said))
      case 'signature_delta':
        if (block?.type === 'reasoning') this.sign(id, delta['signature'])
        return undefined
      case 'compaction_delta':
        if (typeof delta['content'] === 'string') this.emit({ type: 'text-delta', id, delta: delta['content'] })
        return undefined
      case 'citations_delta':
        if (!isFields(citation)) return undefined
        block?.citations.push(citation)
        if (citation['type'] === 'web_search_result_location') this.citedPages.push(citation)
        else this.emitSource(citation)
        return undefined
      default:
        return void this.keep(`delta ${String(delta['type'])}`, delta)
    }
  }

  private sign(id: string, signature: unknown): void {
    const providerMetadata = { anthropic: { signature: textOf(signature) } as JSONObject }
    this.emit({ type: 'reasoning-delta', id, delta: '', providerMetadata })
  }

  private addInput(block: AnthropicBlock, text: string): void {
    if (text === '') return
    // Some servers send input in the start event and again later.
    if (block.isFirst) block.input = ''
    const isTyped = block.isFirst && block.inputType !== undefined
    const delta = isTyped ? `{"type": "${block.inputType}",${text.slice(1)}` : text
    this.emit({ type: 'tool-input-delta', id: block.id, delta })
    block.input += delta
    block.isFirst = false
  }

  private stopBlock(index: number): void {
    const block = this.blocks.get(index)
    if (block === undefined) return
    this.blocks.delete(index)
    if (block.type === 'reasoning' || block.type === 'redacted')
      return this.emit({ type: 'reasoning-end', id: block.id })
    const { id, toolName, more, citations } = block
    if (block.type === 'text') {
      const cited = citations.map((citation) => anthropicCitation(citation, this.documents))
      const providerMetadata = { anthropic: { citations: citations as JSONObject[] } }
      return this.emit({ type: 'text-end', id, ...(cited.length > 0 && { citations: cited, providerMetadata }) })
    }
    this.call(id, toolName, inputOf(block), more)
  }

  /** For tools that Anthropic runs itself. */
  private readResult(block: Fields, type: string): void {
    const { tool_use_id: id, content, caller } = block
    const toolCallId = String(id)
    const name = type.slice(0, -'_tool_result'.length)
    const emit = (toolName: string, result: unknown, isError = false) =>
      this.result(toolCallId, toolName, result, { ...(isError && { isError }), ...metadataOf(caller) })
    if (name === 'mcp') {
      const { toolName = '', ...called } = this.mcpCalls.get(id) ?? {}
      return this.result(toolCallId, toolName, content ?? '', {
        isError: block['is_error'] === true,
        dynamic: true,
        ...called,
      })
    }
    const toolName = name === 'tool_search' ? (this.searchTools.get(id) ?? 'tool_search_tool_regex') : name
    const code = codeTools.has(name)
    const fields = fieldsOf(content)
    if (code && name !== 'code_execution') return emit('code_execution', content)
    if (String(fields?.['type']).endsWith('_error')) {
      const error = { type: fields!['type'], errorCode: fields!['error_code'] }
      return emit(code ? 'code_execution' : toolName, error, true)
    }
    if (code) return emit('code_execution', { content: [], ...fields })
    if (name === 'tool_search') return emit(toolName, camelCased(fields?.['tool_references'] ?? []))
    const output = camelCased(content)
    emit(toolName, Array.isArray(output) ? output.map((page) => ({ pageAge: null, ...withoutNulls(page) })) : output)
    if (name === 'web_fetch') {
      const document = fieldsOf(fields?.['content'])
      const title = textOf(document?.['title']) ?? textOf(fields?.['url']) ?? ''
      this.documents.push({ title, mediaType: textOf(fieldsOf(document?.['source'])?.['media_type']) ?? 'text/plain' })
    }
    if (name !== 'web_search') return
    for (const { url, title, page_age: pageAge = null } of listOf(content)) {
      this.hasSearchResults = true
      const page = { url: String(url), ...(typeof title === 'string' && { title }) }
      const providerMetadata = { anthropic: { pageAge } as JSONObject }
      this.emit({ type: 'source', sourceType: 'url', id: this.generateId(), ...page, providerMetadata })
    }
  }

  private emitSource(citation: Fields): void {
    const source = anthropicSource(citation, this.documents, this.generateId)
    if (source !== undefined) this.emit(source)
  }

  private readEnd(event: Fields): void {
    const delta = fieldsOf(event['delta']) ?? {}
    const usage = fieldsOf(event['usage']) ?? {}
    const details = fieldsOf(delta['stop_details'])
    this.counts = { ...this.counts, ...withoutNulls(usage) }
    this.rawUsage = { ...this.rawUsage, ...usage }
    const edits = fieldsOf(event['context_management'])?.['applied_edits']
    Object.assign(this.about, {
      stopSequence: delta['stop_sequence'] ?? null,
      container: containerOf(delta['container']),
      ...picked(usage, 'service_tier'),
      ...picked(event, 'input_transformations'),
      ...picked(delta, 'safeguard_results'),
      ...(details && { stopDetails: named(details) }),
      ...(edits ? { contextManagement: { appliedEdits: camelCased(edits) } } : {}),
    })
    // Some servers send the counts in a separate later event.
    this.stopReason = textOf(delta['stop_reason']) ?? this.stopReason
    if (this.stopReason !== undefined)
      this.ends(reasonOf(this.stopReason), this.stopReason, textOf(details?.['explanation']))
  }

  protected override close(isWhole: boolean): void {
    if (isWhole) for (const index of [...this.blocks.keys()].toSorted((a, b) => a - b)) this.stopBlock(index)
    if (isWhole && !this.hasSearchResults) for (const citation of this.citedPages) this.emitSource(citation)
    if (this.messageId === undefined) return
    const iterations = listOf(this.counts['iterations'])
    this.usage = anthropicUsage(this.rawUsage ?? {}, this.counts)
    const counted = iterations.map(({ type, model, ...counts }) => ({
      type,
      ...(typeof model === 'string' && { model }),
      ...(camelCased(withoutNulls(counts, 0)) as object),
    }))
    const about = {
      ...this.about,
      usage: this.rawUsage ?? null,
      iterations: this.counts['iterations'] ? counted : null,
    }
    this.metadata = { anthropic: about as JSONObject }
  }
}

function containerOf(container: unknown): Fields | null {
  const skills = fieldsOf(container)?.['skills']
  return isFields(container)
    ? { ...picked(container, 'expires_at', 'id'), skills: skills ? camelCased(skills) : null }
    : null
}

/** The tool from which a call came. */
function metadataOf(caller: unknown): AnthropicBlock['more'] {
  if (!isFields(caller)) return {}
  const { type, tool_id: toolId } = caller
  return { providerMetadata: { anthropic: { caller: { type, toolId } as JSONObject } } }
}

function inputOf({ input, inputType, toolName }: AnthropicBlock): string {
  if (input === '') return '{}'
  const value = toolName === 'code_execution' && inputType !== undefined ? parsed(input) : undefined
  const isCode = isFields(value) && 'code' in value && !('type' in value)
  return isCode ? JSON.stringify({ type: 'programmatic-tool-call', ...value }) : input
}

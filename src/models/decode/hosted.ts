/** Tools that OpenAI runs or defines. Millrace requests none of them; servers and stored prompts add them. */
import type { JSONObject } from '@ai-sdk/provider'
import { AnswerReader } from './answer-reader.ts'
import { argumentsOf, camel, fieldsOf, listOf, named, numberOf, picked, textOf, type Fields } from './fields.ts'

export interface OpenCall {
  toolName: string
  toolCallId: string
  input?: string
  /** The initial item, if the caller runs it. */
  item?: Fields
  containerId?: unknown
  /** The end of the JSON around a text that comes in deltas. */
  tail?: string | undefined
  /** It may stand for several calls, so its input is held. */
  isWithheld?: true
}

type Make = (item: Fields) => unknown

const isServerSide = (item: Fields) => item['execution'] !== 'client'
const actionOf: Make = ({ action }) => ({ action: named(action) })
const searchOf: Make = (item) => ({
  arguments: item['arguments'],
  call_id: isServerSide(item) ? null : item['call_id'],
})
const outputOf: Make = ({ outcome, ...output }) => ({ ...output, outcome: named(outcome) })
const shellOf: Make = (item) => ({ ...picked(item, 'max_output_length'), output: listOf(item['output']).map(outputOf) })

/** Items, their tools, and their output once complete: as JSON text and as value, in the order of the package. */
const kinds = new Map<unknown, [tool: string, input?: Make | undefined, result?: Make]>([
  ['web_search_call', ['web_search']],
  ['file_search_call', ['file_search']],
  ['image_generation_call', ['image_generation', undefined, ({ result }) => ({ result })]],
  ['code_interpreter_call', ['code_interpreter', undefined, ({ outputs }) => ({ outputs })]],
  ['apply_patch_call', ['apply_patch']],
  ['computer_call', ['computer']],
  ['mcp_list_tools', ['mcp']],
  ['program', ['programmatic_tool_calling', (item) => picked(item, 'code', 'fingerprint')]],
  ['program_output', ['programmatic_tool_calling', undefined, (item) => picked(item, 'result', 'status')]],
  ['local_shell_call', ['local_shell', actionOf]],
  ['shell_call', ['shell', actionOf]],
  ['shell_call_output', ['shell', undefined, shellOf]],
  ['tool_search_call', ['tool_search', searchOf]],
  ['tool_search_output', ['tool_search', undefined, ({ tools }) => ({ tools })]],
])
/** OpenAI runs them. */
const running = /^(program|(web_search|file_search|image_generation|code_interpreter|tool_search)_call)$/
/** Their input is emitted from the start of the item. */
const starting = /^(web_search|code_interpreter|apply_patch|computer|tool_search)_call$/
const withoutMetadata = /^(shell_call_output|(code_interpreter|image_generation)_call)$/

const executed = { providerExecuted: true } as const
const jsonText = (text: unknown) => JSON.stringify(textOf(text) ?? '').slice(1, -1)

export abstract class HostedTools extends AnswerReader {
  protected hasPages = false
  protected hasFiles = false
  /** By output index. */
  protected readonly calls = new Map<number, OpenCall>()
  /** Ids of calls by the id of their approval request. */
  protected readonly asked = new Map<unknown, string>()
  private readonly files = new Set<unknown>()
  /** Tool searches without results. */
  private readonly searches: string[] = []

  /** Whether the event belongs to a hosted tool. */
  protected readHosted(event: Fields, type: string): boolean {
    const open = this.calls.get(numberOf(event['output_index']) ?? -1)
    if (type === 'response.image_generation_call.partial_image') {
      const result = { result: event['partial_image_b64'] }
      this.result(String(event['item_id']), 'image_generation', result, { preliminary: true })
    } else if (!/(interpreter_call_code|operation_diff)\.(delta|done)$/.test(type)) return false
    else if (type.endsWith('done')) this.endStreamed(open, event)
    else if (open?.tail !== undefined) this.addStreamed(open, event['delta'])
    return true
  }

  protected startHosted(index: number, id: string, item: Fields): void {
    const type = String(item['type'])
    const [toolName] = kinds.get(type) ?? []
    if (toolName === undefined) return
    const toolCallId = textOf(item['call_id']) || id
    const open: OpenCall = { toolName, toolCallId, containerId: item['container_id'] }
    const more = running.test(type) && isServerSide(item) && executed
    this.calls.set(index, open)
    if (starting.test(type)) this.emit({ type: 'tool-input-start', id: toolCallId, toolName, ...more })
    switch (type) {
      case 'web_search_call':
        return this.call(id, toolName, '{}', executed)
      case 'file_search_call':
      case 'image_generation_call':
        return this.emit({ type: 'tool-call', toolCallId, toolName, input: '{}', ...executed })
      case 'code_interpreter_call':
        return this.startStreamed(open, { containerId: open.containerId, code: '' })
      case 'apply_patch_call': {
        const operation = picked(item['operation'], 'type', 'path')
        const text = operation['type'] === 'delete_file' ? {} : { diff: '' }
        return this.startStreamed(open, { callId: toolCallId, operation: { ...operation, ...text } })
      }
      default:
    }
  }

  protected endHosted(index: number, id: string, item: Fields): void {
    const type = String(item['type'])
    const [, inputOf, resultOf] = kinds.get(type) ?? []
    // Some servers send no start events.
    if (!this.calls.has(index)) this.startHosted(index, id, item)
    const open = this.calls.get(index)
    this.calls.delete(index)
    const { toolCallId, toolName } = open ?? { toolCallId: id, toolName: `mcp.${String(item['name'])}` }
    const metadata = { providerMetadata: { openai: { itemId: id } } }
    const { status } = item
    switch (type) {
      case 'web_search_call':
        return this.endWebSearch(id, status, fieldsOf(item['action']))
      case 'file_search_call':
        return this.endFileSearch(id, item)
      case 'apply_patch_call': {
        const operation = named(item['operation'])
        this.endStreamed(open, operation)
        if (status !== 'completed') return
        this.hasCalls = true
        const input = JSON.stringify({ callId: toolCallId, operation })
        return this.emit({ type: 'tool-call', toolCallId, toolName, input, ...metadata })
      }
      case 'computer_call': {
        if (!item['call_id']) {
          this.call(id, 'computer_use', '', executed)
          return this.result(id, 'computer_use', { type: 'computer_use_tool_result', status })
        }
        this.hasCalls = true
        const actions = listOf(item['actions'] ?? item['action']).map(named)
        const checks = listOf(item['pending_safety_checks']).map(named)
        const input = JSON.stringify({ actions, pendingSafetyChecks: checks, status })
        this.tellInput(toolCallId, input)
        return this.call(toolCallId, toolName, input, metadata)
      }
      case 'mcp_approval_request':
      case 'mcp_call': {
        const asking = type === 'mcp_call' ? undefined : this.generateId()
        const approvalId = textOf(item['approval_request_id']) ?? id
        // A call after an approval has the id of its request.
        const own = asking ?? this.asked.get(approvalId) ?? id
        const input = argumentsOf(item['arguments'])
        this.emit({ type: 'tool-call', toolCallId: own, toolName, input, ...executed, dynamic: true })
        if (asking !== undefined) {
          this.asked.set(approvalId, asking)
          return this.emit({ type: 'tool-approval-request', approvalId, toolCallId: asking })
        }
        const called = picked(item, 'server_label', 'name', 'arguments', 'output', 'error')
        return this.result(own, toolName, { type: 'call', ...called }, metadata)
      }
      case 'compaction': {
        const openai = { type: 'compaction', itemId: id, encryptedContent: item['encrypted_content'] } as JSONObject
        return this.emit({ type: 'custom', kind: 'openai.compaction', providerMetadata: { openai } })
      }
      default:
        if (open === undefined) return this.keep(`item ${type}`, item)
    }
    this.endStreamed(open, item)
    const isSearch = toolName === 'tool_search' && !item['call_id']
    if (isSearch && inputOf) this.searches.push(toolCallId)
    const own = (isSearch && resultOf && this.searches.shift()) || toolCallId
    const more = withoutMetadata.test(type) ? {} : metadata
    if (inputOf !== undefined) {
      if (starting.test(type)) this.emit({ type: 'tool-input-end', id: own })
      const runs = running.test(type) && isServerSide(item) && executed
      const input = JSON.stringify(inputOf(item))
      this.emit({ type: 'tool-call', toolCallId: own, toolName, input, ...runs, ...more })
    }
    if (resultOf !== undefined) this.result(own, toolName, resultOf(item), more)
  }

  private tellInput(id: string, delta: string): void {
    this.emit({ type: 'tool-input-delta', id, delta })
  }

  /** An input that ends with an empty text: the text comes in deltas. */
  private startStreamed(open: OpenCall, input: Fields): void {
    const json = JSON.stringify(input)
    const at = json.lastIndexOf('""') + 1 || json.length
    this.tellInput(open.toolCallId, json.slice(0, at))
    if (at < json.length) open.tail = json.slice(at)
    else this.emit({ type: 'tool-input-end', id: open.toolCallId })
  }

  private addStreamed(open: OpenCall, text: unknown): void {
    open.input = ''
    this.tellInput(open.toolCallId, jsonText(text))
  }

  /** Some servers send no deltas. */
  private endStreamed(open: OpenCall | undefined, { code, diff }: Fields): void {
    if (open?.tail === undefined) return
    const { toolCallId, toolName, containerId, tail } = open
    if (open.input === undefined) this.addStreamed(open, code ?? diff)
    this.tellInput(toolCallId, tail)
    open.tail = undefined
    this.emit({ type: 'tool-input-end', id: toolCallId })
    if (toolName !== 'code_interpreter') return
    const input = JSON.stringify({ code, containerId })
    this.emit({ type: 'tool-call', toolCallId, toolName, input, ...executed })
  }

  private endWebSearch(id: string, status: unknown, action: Fields | undefined): void {
    const { type, sources, ...fields } = action ?? {}
    const found = { action: { type: camel(String(type)), ...named(fields) }, ...(sources ? { sources } : {}) }
    if (status !== 'completed') this.result(id, 'web_search', { status }, { isError: true })
    else this.result(id, 'web_search', action === undefined ? {} : found)
    for (const { type: kind, url } of listOf(sources)) {
      if (kind !== 'url') continue
      this.hasPages = true
      this.emit({ type: 'source', sourceType: 'url', id: this.generateId(), url: String(url) })
    }
  }

  private endFileSearch(id: string, { queries, results }: Fields): void {
    const found = results ? listOf(results).map(named) : null
    this.result(id, 'file_search', { queries, results: found })
    for (const { fileId, filename } of listOf(found)) {
      this.hasFiles = true
      if (this.files.has(fileId)) continue
      this.files.add(fileId)
      const said = { mediaType: 'text/plain', title: String(filename), filename: String(filename) }
      const providerMetadata = { openai: { type: 'file_search', fileId } as JSONObject }
      this.emit({ type: 'source', sourceType: 'document', id: this.generateId(), ...said, providerMetadata })
    }
  }
}

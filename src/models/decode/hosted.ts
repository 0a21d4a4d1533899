/**
 * Tools that OpenAI runs itself: output items, events of their own, and what they found. Millrace asks for none of them; servers and
 * stored prompts add them. Tools that the caller would have to run (shells, patches, computers) cannot be called then.
 */
import type { JSONObject } from '@ai-sdk/provider'
import { AnswerReader } from './answer-reader.ts'
import { camelCased, withoutNulls } from './camel.ts'
import { argumentsOf, fieldsOf, listOf, numberOf, textOf, type Fields } from './fields.ts'

export interface OpenCall {
  toolName: string
  toolCallId: string
  input?: string
  isAsync?: unknown
  containerId?: unknown
}

const executed = { providerExecuted: true } as const

export abstract class HostedTools extends AnswerReader {
  protected hasPages = false
  protected hasFiles = false
  /** By output index. */
  protected readonly calls = new Map<number, OpenCall>()
  readonly #files = new Set<unknown>()
  /** Ids of calls by the id of the approval that they ask for in this answer. */
  readonly #asked = new Map<unknown, string>()

  /** Whether the event is one of a hosted tool. */
  protected readHosted(event: Fields, type: string): boolean {
    const open = this.calls.get(numberOf(event['output_index']) ?? -1)
    switch (type) {
      case 'response.code_interpreter_call_code.delta':
        if (open) this.#addInput(open.toolCallId, JSON.stringify(textOf(event['delta']) ?? '').slice(1, -1))
        return true
      case 'response.code_interpreter_call_code.done':
        if (open) {
          this.#addInput(open.toolCallId, '"}')
          const input = JSON.stringify({ code: event['code'], containerId: open.containerId })
          this.call(open.toolCallId, 'code_interpreter', input, executed)
        }
        return true
      case 'response.image_generation_call.partial_image': {
        const result = { result: event['partial_image_b64'] }
        this.result(String(event['item_id']), 'image_generation', result, { preliminary: true })
        return true
      }
      default:
        return false
    }
  }

  protected startHosted(index: number, id: string, item: Fields): void {
    switch (item['type']) {
      case 'web_search_call':
        this.emit({ type: 'tool-input-start', id, toolName: 'web_search', ...executed })
        return this.call(id, 'web_search', '{}', executed)
      case 'code_interpreter_call': {
        const containerId = item['container_id']
        this.calls.set(index, { toolName: 'code_interpreter', toolCallId: id, containerId })
        this.emit({ type: 'tool-input-start', id, toolName: 'code_interpreter', ...executed })
        return this.#addInput(id, `{"containerId":"${String(containerId)}","code":"`)
      }
      case 'file_search_call':
      case 'image_generation_call':
        return this.emit({
          type: 'tool-call',
          toolCallId: id,
          toolName: item['type'].slice(0, -5),
          input: '{}',
          ...executed,
        })
      default:
    }
  }

  /** Whether the item is known. */
  protected endHosted(index: number, item: Fields): boolean {
    const id = textOf(item['id']) ?? String(index)
    const metadata = { providerMetadata: { openai: { itemId: id } } }
    this.calls.delete(index)
    switch (item['type']) {
      case 'web_search_call':
        this.#endWebSearch(id, item['status'], fieldsOf(item['action']))
        return true
      case 'file_search_call':
        this.#endFileSearch(id, item)
        return true
      case 'code_interpreter_call':
        this.result(id, 'code_interpreter', { outputs: item['outputs'] })
        return true
      case 'image_generation_call':
        this.result(id, 'image_generation', { result: item['result'] })
        return true
      case 'mcp_approval_request': {
        const toolCallId = this.generateId()
        const approvalId = textOf(item['approval_request_id']) ?? id
        this.#asked.set(approvalId, toolCallId)
        this.#emitMcp(toolCallId, item)
        this.emit({ type: 'tool-approval-request', approvalId, toolCallId })
        return true
      }
      case 'mcp_call': {
        const { server_label: serverLabel, name, arguments: input, output, error } = item
        // A call that was asked for has the id under which it was.
        const own = this.#asked.get(item['approval_request_id']) ?? id
        this.#emitMcp(own, item)
        const called = withoutNulls({ type: 'call', serverLabel, name, arguments: input, output, error })
        this.result(own, `mcp.${String(name)}`, called, metadata)
        return true
      }
      case 'compaction': {
        const openai = { type: 'compaction', itemId: id, encryptedContent: item['encrypted_content'] } as JSONObject
        this.emit({ type: 'custom', kind: 'openai.compaction', providerMetadata: { openai } })
        return true
      }
      default:
        return item['type'] === 'mcp_list_tools'
    }
  }

  #addInput(id: string, delta: string): void {
    this.emit({ type: 'tool-input-delta', id, delta })
  }

  #emitMcp(toolCallId: string, item: Fields): void {
    const said = { toolName: `mcp.${String(item['name'])}`, input: argumentsOf(item['arguments']) }
    this.emit({ type: 'tool-call', toolCallId, ...said, ...executed, dynamic: true })
  }

  #endWebSearch(id: string, status: unknown, action: Fields | undefined): void {
    const { type, sources, ...told } = action ?? {}
    const named = type === 'open_page' ? 'openPage' : type === 'find_in_page' ? 'findInPage' : type
    const found = { action: { type: named, ...withoutNulls(told) }, ...(sources ? { sources } : {}) }
    if (status !== 'completed') this.result(id, 'web_search', { status }, { isError: true })
    else this.result(id, 'web_search', action === undefined ? {} : found)
    for (const { type: kind, url } of listOf(sources)) {
      if (kind !== 'url') continue
      this.hasPages = true
      this.emit({ type: 'source', sourceType: 'url', id: this.generateId(), url: String(url) })
    }
  }

  #endFileSearch(id: string, { queries, results }: Fields): void {
    const found = results ? camelCased(results) : null
    this.result(id, 'file_search', { queries, results: found })
    for (const { fileId, filename } of listOf(found)) {
      this.hasFiles = true
      if (this.#files.has(fileId)) continue
      this.#files.add(fileId)
      const said = { mediaType: 'text/plain', title: String(filename), filename: String(filename) }
      const providerMetadata = { openai: { type: 'file_search', fileId } as JSONObject }
      this.emit({ type: 'source', sourceType: 'document', id: this.generateId(), ...said, providerMetadata })
    }
  }
}

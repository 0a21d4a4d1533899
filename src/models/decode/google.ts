/** Google's generate-content stream. */
import type { JSONObject, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { ownValue } from '../../part/own-value.ts'
import { AnswerReader, reasonOf } from './answer-reader.ts'
import { groundingSource } from './citations.ts'
import { argumentsOf, fieldsOf, isFields, listOf, textOf, type Fields } from './fields.ts'
import type { Repeat } from './sse.ts'
import { addedUsage, googleUsage } from './usage.ts'

interface OpenCall {
  id: string
  toolName: string
  args: unknown
  /** The JSON text of the arguments that was emitted so far. */
  sentArgs: string
  metadata: { providerMetadata?: SharedV4ProviderMetadata | undefined }
}

type BlockType = 'text' | 'reasoning'

export class GoogleReader extends AnswerReader {
  private active: { type: BlockType; id: string } | undefined = undefined
  private blocks = 0
  private readonly sources = new Set<string>()
  private readonly openCalls: OpenCall[] = []
  private raw: Fields | undefined = undefined
  private promptFeedback: unknown = null
  private isBlocked = false
  /** The latest value of each. */
  private readonly last: Fields = {
    groundingMetadata: null,
    urlContextMetadata: null,
    safetyRatings: null,
    finishMessage: null,
  }
  // For an answer that takes several requests.
  private token: string | undefined = undefined
  private earlier: Fields | undefined = undefined
  private firstPrompt: unknown = undefined
  private readonly groundings: unknown[] = []
  private grounding: unknown = null
  /** The ids of the calls to which the next results belong. */
  private codeId: string | undefined = undefined
  private serverId: string | undefined = undefined

  /** When a body has ended: the token for the next request, which has the same body and `continuationToken`. */
  continuation(): string | undefined {
    return this.token
  }

  /** The next body begins. */
  continued(): void {
    this.token = undefined
    this.groundings.push(this.grounding)
    this.grounding = null
    this.reopen()
  }

  protected override read(chunk: Fields): Repeat | undefined {
    const { responseId, usageMetadata, promptFeedback, candidates } = chunk
    if (typeof responseId === 'string') this.respond(responseId)
    if (isFields(usageMetadata)) this.raw = usageMetadata
    if (isFields(promptFeedback) && !this.isBlocked) {
      this.promptFeedback = promptFeedback
      const reason = textOf(promptFeedback['blockReason'])
      if (reason && !reason.endsWith('UNSPECIFIED')) {
        this.isBlocked = true
        this.ends('content-filter', reason)
      }
    }
    const [candidate] = listOf(candidates)
    if (candidate === undefined) {
      const says = usageMetadata || promptFeedback || chunk['error'] || responseId || 'candidates' in chunk
      if (!says) this.keep(`frame ${Object.keys(chunk).slice(0, 3).join()}`, chunk)
      return undefined
    }
    for (const key in this.last) this.last[key] = candidate[key] ?? this.last[key]
    this.grounding = candidate['groundingMetadata'] ?? this.grounding
    // A blocked prompt has no answer, but later chunks may have more details.
    return this.isBlocked ? undefined : this.readCandidate(candidate)
  }

  private readCandidate(candidate: Fields): Repeat | undefined {
    for (const chunk of listOf(fieldsOf(candidate['groundingMetadata'])?.['groundingChunks'])) {
      // Takes an id even for a known source, as the package does.
      const source = groundingSource(chunk, this.generateId)
      if (source === undefined || this.sources.has(source.key)) continue
      this.sources.add(source.key)
      this.emit(source.part)
    }
    const parts = listOf(fieldsOf(candidate['content'])?.['parts'])
    for (const part of parts) this.readPart(part)
    const reason = textOf(candidate['finishReason'])
    if (reason) {
      if (reason === 'CONTINUATION') {
        this.token = textOf(candidate['continuationToken']) ?? this.token
        // The next request counts its own tokens.
        if (this.earlier === undefined) this.firstPrompt = this.raw?.['promptTokenCount']
        this.earlier = addedUsage(this.earlier, this.raw)
        this.raw = undefined
      }
      const unified = reasonOf(reason) === 'stop' ? this.impliedReason() : reasonOf(reason)
      this.ends(unified, reason, textOf(candidate['finishMessage']))
      return undefined
    }
    const [part] = parts
    const text = parts.length === 1 ? part!['text'] : undefined
    if (typeof text !== 'string' || part!['thoughtSignature']) return undefined
    const type = part!['thought'] === true ? 'reasoning' : 'text'
    return { key: 'text', apply: (said) => this.say(type, said, undefined) }
  }

  private readPart(part: Fields): void {
    const { functionCall, inlineData, toolCall, toolResponse, executableCode, codeExecutionResult, text } = part
    const signature = textOf(part['thoughtSignature'])
    const metadata = signature ? { google: { thoughtSignature: signature } } : undefined
    if (isFields(functionCall)) return this.readCall(functionCall, metadata)
    if (isFields(inlineData)) {
      this.endBlock()
      const file = { type: 'data' as const, data: textOf(inlineData['data']) ?? '' }
      const mediaType = textOf(inlineData['mimeType']) ?? 'application/octet-stream'
      const type = part['thought'] === true ? 'reasoning-file' : 'file'
      return this.emit({ type, mediaType, data: file, providerMetadata: metadata })
    }
    const server = fieldsOf(toolCall) ?? fieldsOf(toolResponse)
    if (server !== undefined) return this.readServerTool(server, isFields(toolCall), signature)
    if (isFields(executableCode)) {
      this.codeId = this.generateId()
      const call = { toolCallId: this.codeId, toolName: 'code_execution', input: JSON.stringify(executableCode) }
      return this.emit({ type: 'tool-call', ...call, providerExecuted: true })
    }
    if (isFields(codeExecutionResult) && this.codeId !== undefined) {
      const { outcome, output } = codeExecutionResult
      return this.result(this.codeId, 'code_execution', { outcome, output: output ?? '' })
    }
    if (typeof text === 'string' || metadata !== undefined)
      this.say(part['thought'] === true ? 'reasoning' : 'text', textOf(text) ?? '', metadata)
    else this.keep(`part ${String(Object.keys(part)[0])}`, part)
  }

  /** For a tool that Google runs. */
  private readServerTool(
    { id, toolType, args, response }: Fields,
    isCall: boolean,
    signature: string | undefined,
  ): void {
    const toolCallId = (isCall ? undefined : this.serverId) || textOf(id) || this.generateId()
    this.serverId = isCall ? toolCallId : undefined
    const about = { serverToolCallId: toolCallId, serverToolType: toolType as string }
    const more = { providerMetadata: { google: { ...(signature && { thoughtSignature: signature }), ...about } } }
    const toolName = `server:${String(toolType)}`
    if (!isCall) return this.result(toolCallId, toolName, response, more)
    const input = argumentsOf(args ?? {})
    this.emit({ type: 'tool-call', toolCallId, toolName, input, providerExecuted: true, dynamic: true, ...more })
  }

  /** A signature alone must be returned in the same place, so it gets a block of its own unless a text is open. */
  private say(type: BlockType, delta: string, providerMetadata: SharedV4ProviderMetadata | undefined): void {
    if (delta === '' && providerMetadata === undefined) return
    const isOpen = this.active?.type === (delta === '' ? 'text' : type)
    if (!isOpen) {
      this.endBlock()
      this.active = { type, id: String(this.blocks++) }
      this.emit({ type: `${type}-start`, id: this.active.id, providerMetadata })
    }
    const { type: open, id } = this.active!
    this.emit({ type: `${open}-delta`, id, delta, providerMetadata })
    if (delta === '' && !isOpen) this.endBlock()
  }

  /** Other parts end a text block. */
  private endBlock(): void {
    if (this.active !== undefined) this.emit({ type: `${this.active.type}-end`, id: this.active.id })
    this.active = undefined
  }

  /** Most calls come whole; Vertex can send their arguments in pieces. */
  private readCall(call: Fields, providerMetadata: SharedV4ProviderMetadata | undefined): void {
    const { args = null, partialArgs: pieces = null, willContinue: goesOn = null } = call
    const toolName = textOf(call['name'])
    const isWhole = pieces === null && goesOn !== true
    if (toolName !== undefined) {
      const id = textOf(call['id']) || this.generateId()
      if (isWhole) this.endBlock()
      this.emit({ type: 'tool-input-start', id, toolName, providerMetadata })
      this.openCalls.push({ id, toolName, args: isWhole ? args : {}, sentArgs: '', metadata: { providerMetadata } })
    }
    const open = this.openCalls.at(-1)
    if (open === undefined || (isWhole && toolName === undefined && args !== null)) return
    const list = listOf(pieces)
    for (const piece of list) addPiece(open.args as Fields, piece)
    const isText = typeof list.at(-1)?.['stringValue'] === 'string' && list.at(-1)?.['willContinue'] === true
    if (list.length > 0) this.emitArgs(open, argumentsOf(open.args).replace(isText ? /"[\]}]*$/ : /[\]}]*$/, ''))
    if (goesOn !== true && list.every(({ willContinue }) => willContinue !== true)) this.endCall()
  }

  /** Pieces that are not in the order of the arguments are emitted at the end, with the call. */
  private emitArgs(open: OpenCall, json: string): void {
    const delta = json.startsWith(open.sentArgs) ? json.slice(open.sentArgs.length) : ''
    open.sentArgs += delta
    if (delta !== '') this.emit({ type: 'tool-input-delta', id: open.id, delta, ...open.metadata })
  }

  private endCall(): void {
    const open = this.openCalls.pop()
    if (open === undefined) return
    this.endBlock()
    const { id, toolName, metadata } = open
    const input = argumentsOf(open.args)
    this.emitArgs(open, input)
    this.call(id, toolName, input || '{}', metadata, metadata)
    this.hasCalls = true
  }

  protected override close(isWhole: boolean): void {
    while (isWhole && this.openCalls.length > 0) this.endCall()
    this.endBlock()
    const raw = addedUsage(this.earlier, this.raw)
    if (raw !== undefined) this.usage = googleUsage(raw)
    const google = {
      promptFeedback: this.promptFeedback,
      ...this.last,
      ...(this.groundings.length > 0 && { groundingMetadataPerRequest: [...this.groundings, this.grounding] }),
      usageMetadata: raw ?? null,
      serviceTier: raw?.['serviceTier'] ?? this.options.headers.get('x-gemini-service-tier'),
      ...(this.token !== undefined && { continuationToken: this.token }),
      ...(typeof this.firstPrompt === 'number' && { initialPromptTokenCount: this.firstPrompt }),
    }
    this.metadata = { google: google as unknown as JSONObject }
  }
}

/** `$.recipe.steps[0]` = "Mix". Continues an existing text. */
function addPiece(args: Fields, piece: Fields): void {
  const path = [...(textOf(piece['jsonPath']) ?? '').matchAll(/[^.[\]$]+/g)].map(([key]) => key)
  const last = path.pop()
  if (last === undefined || path.includes('__proto__') || last === '__proto__') return
  let at: Fields = args
  for (const [i, key] of path.entries()) {
    const isList = /^\d+$/.test(path[i + 1] ?? last)
    if (!Object.hasOwn(at, key)) at[key] = isList ? [] : {}
    const next = ownValue(at, key)
    if (typeof next !== 'object' || next === null) return
    at = next as Fields
  }
  // A huge index would exhaust the memory.
  if (Array.isArray(at) && !(Number(last) <= at.length)) return
  const { stringValue: text, numberValue, boolValue } = piece
  const before = ownValue(at, last)
  if (typeof text === 'string') at[last] = typeof before === 'string' ? before + text : text
  else if (numberValue !== undefined || boolValue !== undefined) at[last] = numberValue ?? boolValue
  else if ('nullValue' in piece) at[last] = null
}

/** Google's generate-content stream. */
import type { JSONObject, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { ownValue } from '../../part/own-value.ts'
import { AnswerReader, type Reason } from './answer-reader.ts'
import { groundingSource } from './citations.ts'
import { argumentsOf, fieldsOf, isFields, listOf, textOf, type Fields } from './fields.ts'
import type { Repeat } from './sse.ts'
import { addedUsage, googleUsage } from './usage.ts'

interface OpenCall {
  id: string
  toolName: string
  args: Fields
  /** The JSON text of the arguments, as far as it has been told. */
  told: string
  metadata: { providerMetadata?: SharedV4ProviderMetadata | undefined }
}

type Block = 'text' | 'reasoning'

const lastOnes = [
  'groundingMetadata',
  'urlContextMetadata',
  'safetyRatings',
  'finishMessage',
  'continuationToken',
] as const

export class GoogleReader extends AnswerReader {
  private hasResponse = false
  private active: { type: Block; id: string } | undefined = undefined
  private blocks = 0
  private hasCalls = false
  private readonly sources = new Set<string>()
  private readonly openCalls: OpenCall[] = []
  private raw: Fields | undefined = undefined
  private promptFeedback: unknown = null
  private isBlocked = false
  private readonly last: Partial<Record<(typeof lastOnes)[number], unknown>> = {}
  // Of an answer that takes several requests.
  private token: string | undefined = undefined
  private earlier: Fields | undefined = undefined

  /** When a body has ended: the token for the next request, which has the same body and `continuationToken`. */
  continuation(): string | undefined {
    return this.token
  }

  /** The next body begins. */
  continued(): void {
    this.token = undefined
    this.reopen()
  }

  protected override read(chunk: Fields): Repeat | undefined {
    const { responseId, usageMetadata, promptFeedback, candidates } = chunk
    if (!this.hasResponse && typeof responseId === 'string') {
      this.hasResponse = true
      this.emit({ type: 'response-metadata', id: responseId })
    }
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
    for (const key of lastOnes) this.last[key] = candidate[key] ?? this.last[key]
    // A blocked prompt has no answer, but what comes later may tell more of it.
    return this.isBlocked ? undefined : this.readCandidate(candidate)
  }

  private readCandidate(candidate: Fields): Repeat | undefined {
    for (const chunk of listOf(fieldsOf(candidate['groundingMetadata'])?.['groundingChunks'])) {
      // It takes an id even for a source that is known, as the package does.
      const source = groundingSource(chunk, this.generateId)
      if (source === undefined || this.sources.has(source.key)) continue
      this.sources.add(source.key)
      this.emit(source.part)
    }
    const parts = listOf(fieldsOf(candidate['content'])?.['parts'])
    for (const part of parts) this.readPart(part)
    const reason = textOf(candidate['finishReason'])
    if (reason) {
      if (reason === 'CONTINUATION') this.pause(candidate)
      const unified = this.hasCalls && reason === 'STOP' ? 'tool-calls' : reasonOf(reason)
      this.ends(unified, reason, textOf(candidate['finishMessage']))
      return undefined
    }
    const [part] = parts
    const text = parts.length === 1 ? part!['text'] : undefined
    if (typeof text !== 'string' || part!['thoughtSignature']) return undefined
    const type = part!['thought'] === true ? 'reasoning' : 'text'
    return { key: 'text', apply: (said) => this.say(type, said, undefined) }
  }

  /** The next request counts its own tokens. */
  private pause(candidate: Fields): void {
    this.token = textOf(candidate['continuationToken']) ?? this.token
    this.earlier = addedUsage(this.earlier, this.raw)
    this.raw = undefined
  }

  private readPart(part: Fields): void {
    const { functionCall, inlineData, text } = part
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
    if (typeof text === 'string') this.say(part['thought'] === true ? 'reasoning' : 'text', text, metadata)
    else if (metadata !== undefined) this.say(part['thought'] === true ? 'reasoning' : 'text', '', metadata)
    else this.keep(`part ${String(Object.keys(part)[0])}`, part)
  }

  /** A signature alone must come back in the same place, so it makes a block of its own unless a text is open. */
  private say(type: Block, delta: string, providerMetadata: SharedV4ProviderMetadata | undefined): void {
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

  /** Parts other than texts separate them. */
  private endBlock(): void {
    if (this.active !== undefined) this.emit({ type: `${this.active.type}-end`, id: this.active.id })
    this.active = undefined
  }

  /** Most come whole; Vertex can send their arguments piece by piece. */
  private readCall(call: Fields, providerMetadata: SharedV4ProviderMetadata | undefined): void {
    const { args = null, partialArgs: pieces = null, willContinue: goesOn = null } = call
    const toolName = textOf(call['name'])
    const metadata = { providerMetadata }
    if (pieces !== null || (toolName !== undefined && goesOn === true)) {
      if (toolName !== undefined) {
        const id = textOf(call['id']) || this.generateId()
        this.openCalls.push({ id, toolName, args: {}, told: '', metadata })
        this.emit({ type: 'tool-input-start', id, toolName, ...metadata })
      }
      const open = this.openCalls.at(-1)
      if (open === undefined || pieces === null) return
      const list = listOf(pieces)
      for (const piece of list) addPiece(open.args, piece)
      const last = list.at(-1)
      const isOpen = typeof last?.['stringValue'] === 'string' && last['willContinue'] === true
      this.tell(open, JSON.stringify(open.args).replace(isOpen ? /"[\]}]*$/ : /[\]}]*$/, ''))
      if (goesOn !== true && list.every(({ willContinue }) => willContinue !== true)) this.endCall()
    } else if (toolName === undefined) {
      if (args === null && goesOn === null) this.endCall()
    } else {
      const id = textOf(call['id']) || this.generateId()
      this.endBlock()
      this.emit({ type: 'tool-input-start', id, toolName, ...metadata })
      const input = argumentsOf(args)
      if (input !== '') this.emit({ type: 'tool-input-delta', id, delta: input, ...metadata })
      this.finishCall(id, toolName, input, metadata)
    }
  }

  private tell(open: OpenCall, json: string): void {
    // Pieces that come in another order than they stand in the arguments are told at the end, with the call.
    if (!json.startsWith(open.told) || json === open.told) return
    const delta = json.slice(open.told.length)
    open.told = json
    this.emit({ type: 'tool-input-delta', id: open.id, delta, ...open.metadata })
  }

  private endCall(): void {
    const open = this.openCalls.pop()
    if (open === undefined) return
    this.endBlock()
    const input = argumentsOf(open.args)
    this.tell(open, input)
    this.finishCall(open.id, open.toolName, input, open.metadata)
  }

  private finishCall(id: string, toolName: string, input: string, metadata: OpenCall['metadata']): void {
    this.emit({ type: 'tool-input-end', id, ...metadata })
    this.emit({ type: 'tool-call', toolCallId: id, toolName, input: input || '{}', ...metadata })
    this.hasCalls = true
  }

  protected override impliedReason(): Reason {
    return this.hasCalls ? 'tool-calls' : 'stop'
  }

  protected override close(isWhole: boolean): void {
    while (isWhole && this.openCalls.length > 0) this.endCall()
    this.endBlock()
    const raw = addedUsage(this.earlier, this.raw)
    if (raw !== undefined) this.usage = googleUsage(raw)
    const { groundingMetadata, urlContextMetadata, safetyRatings, finishMessage, continuationToken } = this.last
    const google = {
      promptFeedback: this.promptFeedback,
      groundingMetadata: groundingMetadata ?? null,
      urlContextMetadata: urlContextMetadata ?? null,
      safetyRatings: safetyRatings ?? null,
      usageMetadata: raw ?? null,
      finishMessage: finishMessage ?? null,
      serviceTier: raw?.['serviceTier'] ?? null,
      ...(continuationToken ? { continuationToken } : {}),
    }
    this.metadata = { google: google as unknown as JSONObject }
  }
}

function reasonOf(raw: string): Reason {
  if (raw === 'STOP') return 'stop'
  if (raw === 'MAX_TOKENS' || raw === 'CONTINUATION') return 'length'
  if (/^(IMAGE_SAFETY|RECITATION|SAFETY|BLOCKLIST|PROHIBITED_CONTENT|SPII)$/.test(raw)) return 'content-filter'
  return /^(MALFORMED|UNEXPECTED|TOO_MANY|MISSING)_/.test(raw) ? 'error' : 'other'
}

/** `$.recipe.steps[0]` = "Mix". A text goes on where there is one. */
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
  // A gap would fill the memory.
  if (Array.isArray(at) && !(Number(last) <= at.length)) return
  const { stringValue: text, numberValue, boolValue } = piece
  const before = ownValue(at, last)
  if (typeof text === 'string') at[last] = typeof before === 'string' ? before + text : text
  else if (numberValue !== undefined || boolValue !== undefined) at[last] = numberValue ?? boolValue
  else if ('nullValue' in piece) at[last] = null
}

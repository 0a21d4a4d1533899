/**
 * The common part of the readers of the four protocols. Bytes in, parts out, synchronously and in order: without streams, promises, schemas,
 * connections or clocks.
 *
 * A reader uses the fields that it knows. It skips frames without content and passes on unknown ones as `raw`, once per kind. It fails only if the
 * stream shows that the answer is broken: an error, a truncated frame, a final reason that means failure. Earlier parts stay. In any case there is
 * one `finish`, and only the limits throw.
 */
import type { JSONObject, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { recordable } from '../../part/json.ts'
import type { ReadLimits } from '../limits/read-limits.ts'
import { BrokenFrame, FailedEnd, HtmlAnswer } from '../model-error.ts'
import { isFields, numberOf, parsed, textOf, type Fields } from './fields.ts'
import { EventStream, type EventSink, type Repeat } from './sse.ts'

export type Emit = (part: LanguageModelV4StreamPart) => void
type PartOf<T extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: T }>
type FinishPart = PartOf<'finish'>
export type Reason = FinishPart['finishReason']['unified']
type CallFields = Partial<PartOf<'tool-call'>>
type ResultFields = Partial<PartOf<'tool-result'>>

export interface ReaderOptions {
  /** Called synchronously, in order. `stream-start` comes before the first bytes. */
  emit: Emit
  /** The warnings of the request. */
  warnings: PartOf<'stream-start'>['warnings']
  /** Subject of error messages: `openai:gpt-5`. */
  who: string
  limits?: ReadLimits | undefined
  /** For parts that the provider sends without an id. */
  generateId: () => string
  call: LanguageModelV4CallOptions
  /** The package's name: `openai.responses`. */
  provider: string
  /** The headers of the response. */
  headers: Headers
}

export abstract class AnswerReader implements EventSink {
  /** `ending`: the answer is complete, but its counts may follow. `done`: the rest is ignored. */
  state: 'reading' | 'ending' | 'done' = 'reading'
  /** The number of emitted parts. */
  emitted = 0
  protected readonly generateId: () => string
  protected usage: FinishPart['usage'] = noUsage
  protected metadata: FinishPart['providerMetadata'] = undefined
  /** The answer has a text, a call or a file. */
  protected hasContent = false
  /** There are calls for the caller to run. */
  protected hasCalls = false
  protected hasRefusal = false
  protected readonly options: ReaderOptions
  private hasResponse = false
  private readonly send: Emit
  private stream: EventStream
  private readonly kept = new Set<string>()
  private reason: FinishPart['finishReason'] | undefined = undefined
  /** Parts before the answer itself: if an error comes first they are dropped. */
  private held: LanguageModelV4StreamPart[] | undefined

  constructor(options: ReaderOptions) {
    this.options = options
    this.send = options.emit
    this.generateId = options.generateId
    this.stream = new EventStream(this, this.options)
    this.held = [{ type: 'stream-start', warnings: options.warnings }]
  }

  /** Another body follows. */
  protected reopen(): void {
    this.stream = new EventStream(this, this.options)
    this.reason = undefined
    this.state = 'reading'
  }

  /** The next bytes of the body. They may split lines and characters anywhere. */
  push(bytes: Uint8Array): void {
    if (this.state !== 'done') this.stream.push(bytes)
  }

  /** The body has ended, or no counts came after a complete answer. */
  end(): void {
    if (this.state === 'done') return
    this.stream.end()
    this.finish()
  }

  /** One object of the stream. */
  protected abstract read(value: Fields, name: string): Repeat | undefined
  /** Emits open items, and sets `usage` and `metadata`. `isWhole`: the answer is complete, so its calls may be made. */
  protected abstract close(isWhole: boolean): void

  protected emit(part: LanguageModelV4StreamPart): void {
    this.emitted++
    this.hasContent ||= says(part)
    if (this.held !== undefined && part.type !== 'ping') {
      if (aside.has(part.type)) return void this.held.push(part)
      if (part.type !== 'error') for (const each of this.held) this.send(each)
      this.held = undefined
    }
    this.send(part)
  }

  /** The metadata of the response. Some servers send 0 for an unknown time. */
  protected respond(id: unknown, model?: unknown, created?: unknown): void {
    if (this.hasResponse) return
    this.hasResponse = true
    const timestamp = numberOf(created) ? new Date(Number(created) * 1000) : undefined
    this.emit({ type: 'response-metadata', id: textOf(id), modelId: textOf(model), timestamp })
  }

  /** Applies this text, and returns where the next event has its text. */
  protected repeated(key: string, text: unknown, apply: (text: string) => void): Repeat | undefined {
    if (typeof text !== 'string') return undefined
    apply(text)
    return { key, apply }
  }

  /** A call whose input was emitted. */
  protected call(toolCallId: string, toolName: string, input: string, more: CallFields = {}, endMore = {}): void {
    this.emit({ type: 'tool-input-end', id: toolCallId, ...endMore })
    this.emit({ type: 'tool-call', toolCallId, toolName, input, ...more })
  }

  protected result(toolCallId: string, toolName: string, result: unknown, more: ResultFields = {}): void {
    this.emit({ type: 'tool-result', toolCallId, toolName, result: (result ?? {}) as JSONObject, ...more })
  }

  onEvent(data: string, name: string): Repeat | undefined {
    if (this.state === 'done') return undefined
    const before = this.emitted
    const repeat = this.onData(data, name)
    // A server that is still reading the prompt is alive.
    if (!this.hasContent && this.emitted === before && data.charCodeAt(0) === 123) this.emit({ type: 'ping' })
    return repeat
  }

  private onData(data: string, name: string): Repeat | undefined {
    if (data.charCodeAt(0) !== 123) {
      const said = data.trim()
      if (said === '[DONE]') return void this.onDone()
      if (said === '' || name === 'ping') return undefined
      if (name === 'error') return void this.fail(parsed(said) ?? said)
      if (said[0] !== '{') return void this.keep('text', said)
    }
    let value: unknown
    try {
      value = JSON.parse(data)
    } catch {
      const lines = data.split('\n')
      // Some servers end their events with one line feed.
      if (lines.length > 1) for (const line of lines) this.onEvent(line, name)
      else this.fail(new BrokenFrame())
      return undefined
    }
    return this.onValue(value as Fields, name)
  }

  private onValue(value: Fields, name: string): Repeat | undefined {
    const { error, type, object } = value
    const isError = type === 'error' || object === 'error'
    if (type === 'ping' || type === 'keepalive' || this.state === 'done') return undefined
    const repeat = isError ? undefined : this.read(value, name)
    if (isError || name === 'error' || ((error ?? false) !== false && error !== '')) this.fail(value)
    return repeat
  }

  onDocument(text: string): void {
    const said = text.trim()
    if (said[0] === '<') return this.fail(new HtmlAnswer(said))
    const value = parsed(said)
    // Without `alt=sse`, Google sends its chunks as one list. Some servers send one line each.
    const values = value === undefined ? said.split('\n').map(parsed) : Array.isArray(value) ? value : [value]
    for (const each of values) {
      if (this.state === 'done') return
      if (each === undefined) this.fail(new BrokenFrame())
      else if (isFields(each)) this.onValue(each, '')
    }
    // An error without that name: `{"detail": "…"}`. An empty object counts as a missing answer.
    const isEmpty = isFields(value) && Object.keys(value).length === 0
    if (this.state === 'reading' && !this.hasContent && !isEmpty) this.fail(value)
  }

  /** `[DONE]` without a reason: the only end that some servers send. */
  private onDone(): void {
    if (this.state === 'reading' && this.hasContent) this.ends(this.impliedReason(), undefined)
    this.finish()
  }

  /** Calls are made even if the model refuses: the refusal stays in the text. */
  protected impliedReason(): Reason {
    return this.hasCalls ? 'tool-calls' : this.hasRefusal ? 'content-filter' : 'stop'
  }

  /** The answer is complete. A reason that means failure fails it, with the provider's message. */
  protected ends(unified: Reason, raw: string | undefined, why?: string): void {
    const isEmpty = unified === 'other' && !this.hasContent && raw !== undefined
    if (unified === 'error' || isEmpty) return this.fail(new FailedEnd(raw, why), raw)
    this.reason = { unified, raw }
    if (this.state === 'reading') this.state = 'ending'
  }

  /** The answer is broken: the rest is ignored. `error`: as the provider sent it. */
  protected fail(error: unknown, raw?: string): void {
    if (this.state === 'done') return
    this.reason = { unified: 'error', raw }
    this.emit({ type: 'error', error })
    this.finish()
  }

  protected finish(): void {
    if (this.state === 'done') return
    this.state = 'done'
    this.close(this.reason !== undefined && this.reason.unified !== 'error')
    this.emit({
      type: 'finish',
      finishReason: this.reason ?? { unified: 'interrupted', raw: undefined },
      usage: this.usage,
      ...(this.metadata && { providerMetadata: this.metadata }),
    })
  }

  /** Passes on an unknown frame once per kind. */
  protected keep(kind: string, rawValue: unknown): void {
    if (this.kept.has(kind) || this.kept.size >= 32) return
    this.kept.add(kind)
    this.emit({ type: 'raw', rawValue: recordable(rawValue) })
  }
}

const aside: ReadonlySet<string> = new Set(['stream-start', 'response-metadata', 'raw', 'custom'])

/** The servers' words for the end of an answer. Many use those of another protocol. */
const reasons: readonly [Reason, RegExp][] = [
  ['stop', /^(stop|end_turn|stop_sequence|pause_turn|eos|eos_token|STOP)$/],
  [
    'length',
    /^(length|model_length|max_tokens|max_output_tokens|model_context_window_exceeded|MAX_TOKENS|CONTINUATION)$/,
  ],
  ['tool-calls', /^(tool_calls|function_call|tool_use)$/],
  [
    'content-filter',
    /^(content_filter|sensitive|refusal|(IMAGE_)?SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII)$/,
  ],
  [
    'error',
    /^(error|abort|cancelled|network_error|insufficient_system_resource|(MALFORMED|UNEXPECTED|TOO_MANY|MISSING)_.*)$/,
  ],
]

export function reasonOf(raw: string): Reason {
  return reasons.find(([, words]) => words.test(raw))?.[0] ?? 'other'
}

const contentTypes: ReadonlySet<string> = new Set(['tool-input-start', 'tool-call', 'file'])

function says(part: LanguageModelV4StreamPart): boolean {
  return part.type === 'text-delta' ? part.delta !== '' : contentTypes.has(part.type)
}

const noUsage: FinishPart['usage'] = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
}

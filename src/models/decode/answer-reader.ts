/**
 * What the readers of the four protocols have in common. Bytes in, parts out, at once and in order: no stream, no promise and no schema
 * on the way, and neither connection nor clock.
 *
 * A reader uses the fields that it knows. It skips frames that say nothing and hands on what it does not understand as `raw`, once a kind.
 * It fails only where the stream shows that the answer is broken: an error, a frame that breaks off, an end that means failure. What was
 * said before stays. Whatever comes, there is one `finish`, and nothing throws but the limits.
 */
import type {
  JSONObject,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
  SharedV4Warning,
} from '@ai-sdk/provider'
import { recordable } from '../../part/json.ts'
import type { ReadLimits } from '../outside/read-limits.ts'
import { BrokenFrame, FailedEnd, HtmlAnswer } from '../broken-answer.ts'
import { isFields, parsed, type Fields } from './fields.ts'
import { EventStream, type EventSink, type Repeat } from './sse.ts'

export type Emit = (part: LanguageModelV4StreamPart) => void
export type Reason = LanguageModelV4FinishReason['unified']

type PartOf<T extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: T }>
type CallFields = Partial<PartOf<'tool-call'>>
type ResultFields = Partial<PartOf<'tool-result'>>

export interface ReaderOptions {
  /** Called synchronously, in order. `stream-start` comes before the first bytes. */
  emit: Emit
  /** Of the request. */
  warnings: SharedV4Warning[]
  /** Subject of error messages: `openai:gpt-5`. */
  who: string
  limits?: ReadLimits | undefined
  /** For parts that the provider sends without an id. */
  generateId: () => string
}

export abstract class AnswerReader implements EventSink {
  /** `ending`: the answer is complete, but its counts may follow. `done`: nothing more is read. */
  state: 'reading' | 'ending' | 'done' = 'reading'
  /** How many parts have been emitted. */
  emitted = 0
  protected readonly generateId: () => string
  protected usage: LanguageModelV4Usage = noUsage
  protected metadata: SharedV4ProviderMetadata | undefined = undefined
  /** The answer has a text, a call or a file. */
  protected hasContent = false
  readonly #emit: Emit
  readonly #options: ReaderOptions
  #events: EventStream
  readonly #told = new Set<string>()
  #reason: LanguageModelV4FinishReason | undefined = undefined
  /** What comes before the answer itself: behind an error that comes first it has no meaning. */
  #held: LanguageModelV4StreamPart[] | undefined

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#emit = options.emit
    this.generateId = options.generateId
    this.#events = this.#open()
    this.#held = [{ type: 'stream-start', warnings: options.warnings }]
  }

  #open(): EventStream {
    const { who, limits } = this.#options
    return new EventStream({ sink: this, who, limits })
  }

  /** Another body follows. */
  protected reopen(): void {
    this.#events = this.#open()
    this.#reason = undefined
    this.state = 'reading'
  }

  /** The next bytes of the body. They may split lines and characters anywhere. */
  push(bytes: Uint8Array): void {
    if (this.state !== 'done') this.#events.push(bytes)
  }

  /** The body has ended, or nothing comes after an end that is complete but for its counts. */
  end(): void {
    if (this.state === 'done') return
    this.#events.end()
    this.finish()
  }

  /** One object of the stream. */
  protected abstract read(value: Fields, name: string): Repeat | undefined
  /** Emits what is still open, and sets `usage` and `metadata`. `isWhole`: the answer is complete, so its calls may be made. */
  protected abstract close(isWhole: boolean): void

  /** What a complete answer lacks to be one. */
  protected lack(): string | undefined {
    return undefined
  }

  protected emit(part: LanguageModelV4StreamPart): void {
    this.emitted++
    this.hasContent ||= says(part)
    if (this.#held !== undefined && part.type !== 'ping') {
      if (aside.has(part.type)) return void this.#held.push(part)
      if (part.type !== 'error') for (const each of this.#held) this.#emit(each)
      this.#held = undefined
    }
    this.#emit(part)
  }

  /** Does it with this text, and says where the next one stands. */
  protected repeated(key: string, text: unknown, apply: (text: string) => void): Repeat | undefined {
    if (typeof text !== 'string') return undefined
    apply(text)
    return { key, apply }
  }

  /** A call whose input has been told. */
  protected call(toolCallId: string, toolName: string, input: string, more: CallFields = {}): void {
    this.emit({ type: 'tool-input-end', id: toolCallId })
    this.emit({ type: 'tool-call', toolCallId, toolName, input, ...more })
  }

  protected result(toolCallId: string, toolName: string, result: unknown, more: ResultFields = {}): void {
    this.emit({ type: 'tool-result', toolCallId, toolName, result: (result ?? {}) as JSONObject, ...more })
  }

  onEvent(data: string, name: string): Repeat | undefined {
    if (this.state === 'done') return undefined
    const before = this.emitted
    const repeat = this.#onData(data, name)
    // A server that is still reading the prompt is alive.
    if (!this.hasContent && this.emitted === before && data.charCodeAt(0) === 123) this.emit({ type: 'ping' })
    return repeat
  }

  #onData(data: string, name: string): Repeat | undefined {
    if (data.charCodeAt(0) !== 123) {
      const said = data.trim()
      if (said === '[DONE]') return void this.#onDone()
      if (said === '' || name === 'ping') return undefined
      if (name === 'error') return void this.fail(parsed(said) ?? said)
      if (said[0] !== '{') return void this.keep('text', said)
    }
    let value: unknown
    try {
      value = JSON.parse(data)
    } catch {
      return void this.fail(new BrokenFrame())
    }
    return this.#onValue(value as Fields, name)
  }

  #onValue(value: Fields, name: string): Repeat | undefined {
    const { error } = value
    const repeat = this.state === 'done' ? undefined : this.read(value, name)
    if (error !== undefined && error !== null && error !== false && error !== '') this.fail(value)
    else if (name === 'error') this.fail(value)
    return repeat
  }

  onDocument(text: string): void {
    const said = text.trim()
    if (said[0] === '<') return this.fail(new HtmlAnswer(said))
    const value = parsed(said)
    // Without `alt=sse`, Google sends its chunks as one list. Some send a line for each.
    const values = value === undefined ? said.split('\n').map(parsed) : Array.isArray(value) ? value : [value]
    for (const each of values) {
      if (this.state === 'done') return
      if (each === undefined) this.fail(new BrokenFrame())
      else if (isFields(each)) this.#onValue(each, '')
    }
    // No answer, and no error by that name: `{"detail": "…"}`. What says nothing is an answer that did not come.
    const isEmpty = isFields(value) && Object.keys(value).length === 0
    if (this.state === 'reading' && !this.hasContent && !isEmpty) this.fail(value)
  }

  /** `[DONE]` without a reason: some servers know no other end. */
  #onDone(): void {
    if (this.state === 'reading' && this.hasContent) this.ends(this.impliedReason(), undefined)
    this.finish()
  }

  protected impliedReason(): Reason {
    return 'stop'
  }

  /** The answer is complete. A reason that means failure fails it, with what the provider says of it. */
  protected ends(unified: Reason, raw: string | undefined, why?: string): void {
    const isEmpty = unified === 'other' && !this.hasContent && raw !== undefined
    if (unified === 'error' || isEmpty) return this.fail(new FailedEnd(raw, why), raw)
    this.#reason = { unified, raw }
    if (this.state === 'reading') this.state = 'ending'
  }

  /** The answer is broken: nothing more is read. `error`: what the provider sent. */
  protected fail(error: unknown, raw?: string): void {
    if (this.state === 'done') return
    this.#reason = { unified: 'error', raw }
    this.emit({ type: 'error', error })
    this.finish()
  }

  protected finish(): void {
    if (this.state === 'done') return
    const lack = isWhole(this.#reason) ? this.lack() : undefined
    if (lack !== undefined) return this.fail(new FailedEnd(this.#reason?.raw, lack), this.#reason?.raw)
    this.state = 'done'
    this.close(isWhole(this.#reason))
    this.emit({
      type: 'finish',
      finishReason: this.#reason ?? { unified: 'interrupted', raw: undefined },
      usage: this.usage,
      ...(this.metadata && { providerMetadata: this.metadata }),
    })
  }

  /** What nobody understands is kept once. */
  protected keep(kind: string, rawValue: unknown): void {
    if (this.#told.has(kind) || this.#told.size >= 32) return
    this.#told.add(kind)
    this.emit({ type: 'raw', rawValue: recordable(rawValue) })
  }
}

const aside: ReadonlySet<string> = new Set(['stream-start', 'response-metadata', 'raw', 'custom'])

function isWhole(reason: LanguageModelV4FinishReason | undefined): boolean {
  return reason !== undefined && reason.unified !== 'error'
}

function says(part: LanguageModelV4StreamPart): boolean {
  switch (part.type) {
    case 'text-delta':
      return part.delta !== ''
    case 'tool-input-start':
    case 'tool-call':
    case 'file':
      return true
    default:
      return false
  }
}

export const noUsage: LanguageModelV4Usage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
}

/** One call of a model whose answer we read ourselves: see `direct-model.ts`. */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { RequestFacts, StreamDecoder } from './decode/decoder.ts'
import type { BodySink, PushBody } from './http/push-body.ts'
import { readStream } from './model-read.ts'
import type { PartSink } from './part-sink.ts'
import type { Open, Opened } from './provider-fetch.ts'

type Warnings = Extract<LanguageModelV4StreamPart, { type: 'stream-start' }>['warnings']

/** What a decoder is created from. */
export interface Answer {
  /** The package's name: `openai.responses`. */
  provider: string
  options: LanguageModelV4CallOptions
  warnings: Warnings
  request: RequestFacts
  emit(part: LanguageModelV4StreamPart): void
}

/** A long answer may take several requests: see `GoogleDecoder`. */
export interface ContinuedDecoder extends StreamDecoder {
  continuation?(): string | undefined
  continued?(): void
  failed?(error: unknown): void
}

/** Undefined: the package must read this answer itself. */
export type CreateDecoder = (answer: Answer) => ContinuedDecoder | undefined

/** One call, found by the signal that the package passes on to `getArgs` and to `fetch`. */
export interface Call {
  prepared: Prepared | undefined
  /** The answer to give to the package instead of sending the request. */
  replay: Promise<Opened> | undefined
  /** The package has made the request. Its answer is read here: the package hears nothing more. */
  onSent(sent: Sent): void
}

interface Sent {
  url: string
  init: RequestInit
  opened: Promise<Opened>
}

/** What the packages' `getArgs` resolves with. */
export interface Prepared {
  args: Record<string, unknown>
  warnings: Warnings
}

/** Thrown by `fetch` to end `doStream`. Made once, since its stack says nothing. */
export const requestSent = new Error('The request has been sent; its answer is read elsewhere.')

const callOfSignal = Symbol('call')

/** A property, because an old `WeakMap` keeps its young values alive until the old generation is collected. */
type Marked = AbortSignal & { [callOfSignal]?: Call }

/** The call whose signal this is. */
export function callOf(signal: Marked | null | undefined): Call | undefined {
  return signal?.[callOfSignal]
}

/** What all calls of a model share. */
export interface Target {
  open: Open
  createDecoder: CreateDecoder
  model: LanguageModelV4
}

/** A class, because its functions would cost each open answer more than what it knows. */
export class DirectCall implements Call, BodySink {
  prepared: Call['prepared'] = undefined
  replay: Call['replay'] = undefined
  readonly #target: Target
  readonly #options: LanguageModelV4CallOptions
  readonly #sink: PartSink
  readonly #controller = new AbortController()
  #stopReading: ((reason: unknown) => void) | undefined = undefined
  #decoder: ContinuedDecoder | undefined = undefined
  #body: PushBody | undefined = undefined
  #sent: Sent | undefined = undefined
  #hasEmitted = false
  #hasEnded = false

  constructor(target: Target, options: LanguageModelV4CallOptions, sink: PartSink) {
    this.#target = target
    this.#options = options
    this.#sink = sink
  }

  start(): void {
    const signal: Marked = this.#controller.signal
    signal[callOfSignal] = this
    void this.#askPackage()
  }

  stop(reason: unknown): void {
    this.#stopReading?.(reason)
    // Nothing is left to stop, and each abort is an event.
    if (!this.#hasEnded) this.#controller.abort(reason)
  }

  /** An error of the package or a decoder: in place of an answer it is a refusal. */
  #giveUp(error: unknown): void {
    this.#sink.fail(error, this.#hasEmitted ? 'stream' : 'request')
  }

  /** The package reads the answer itself only if it could not be watched, or if it gets a refusal again. */
  async #askPackage(): Promise<void> {
    try {
      this.#stopReading = readStream((await this.#callPackage()).stream, this.#sink)
    } catch (error) {
      if (error !== requestSent) this.#giveUp(error)
    }
  }

  onSent(sent: Sent): void {
    this.#sent = sent
    const answered = (opened?: Opened) => this.#answered(sent, opened)
    sent.opened.then(answered, () => answered()).catch((error: unknown) => this.#giveUp(error))
  }

  /** `opened`: undefined if the request failed. */
  #answered({ url, opened: opening }: Sent, opened: Opened | undefined): void {
    if (this.#sink.isOver()) return
    const { model, createDecoder } = this.#target
    const { args, warnings } = this.prepared!
    this.#decoder =
      opened === undefined || !isReadable(opened)
        ? undefined
        : createDecoder({
            provider: model.provider,
            options: this.#options,
            warnings,
            request: new Facts(url, args, opened.headers),
            emit: (part) => {
              this.#hasEmitted = true
              this.#sink.part(part)
            },
          })
    if (this.#decoder === undefined) {
      this.replay = opening
      return void this.#askPackage()
    }
    if (this.#decoder.continuation === undefined) this.prepared = this.#sent = undefined
    this.#read(opened!)
  }

  #callPackage() {
    return this.#target.model.doStream({ ...this.#options, abortSignal: this.#controller.signal })
  }

  #read(opened: Opened): void {
    this.#body = opened.body()
    this.#body.start(this)
  }

  bytes(bytes: Uint8Array): boolean {
    try {
      this.#decoder!.push(bytes)
    } catch (error) {
      this.#giveUp(error)
      return true
    }
    const wait = this.#sink.ready()
    if (wait === undefined) return true
    void wait.then(this.#resume)
    return false
  }

  readonly #resume = (): void => this.#body!.resume()

  /** The body has ended. */
  end(): void {
    const decoder = this.#decoder!
    const token = decoder.continuation?.()
    if (token === undefined) return this.#finish()
    this.#next(token)
      .then(
        (answer) => {
          if (this.#sink.isOver()) return
          decoder.continued!()
          this.#read(answer)
        },
        (error: unknown) => {
          decoder.failed!(error)
          this.#finish()
        },
      )
      .catch((error: unknown) => this.#giveUp(error))
  }

  async #next(token: string): Promise<Opened> {
    const { url, init } = this.#sent!
    const body = JSON.stringify({ ...this.prepared!.args, continuationToken: token })
    const next = this.#target.open(url, { ...init, body })
    const answer = await next.catch(() => undefined)
    if (answer !== undefined && isReadable(answer)) return answer
    this.replay = next
    await this.#callPackage()
    throw new Error('unreachable: the package accepts an answer that is none')
  }

  #finish(): void {
    this.#hasEnded = true
    try {
      this.#decoder!.end()
    } catch (error) {
      return this.#giveUp(error)
    }
    this.#sink.end()
  }

  /** The body has failed. */
  fail(error: unknown): void {
    this.#sink.fail(error, 'stream')
  }
}

/** The package reports anything else as a failed request. */
function isReadable({ status }: Opened): boolean {
  return status >= 200 && status < 300 && status !== 204 && status !== 205
}

/** A class: a getter in an object literal gives each object a hidden class of its own. */
class Facts implements RequestFacts {
  readonly url: string
  readonly body: unknown
  readonly #headers: Headers

  constructor(url: string, body: unknown, headers: Headers) {
    this.url = url
    this.body = body
    this.#headers = headers
  }

  get responseHeaders(): Record<string, string> {
    return Object.fromEntries(this.#headers)
  }
}

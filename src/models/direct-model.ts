/**
 * A provider package's model whose answers we read ourselves. The package builds the request and reads refusals; the decoder of its
 * protocol (`decode/`) reads the answer.
 *
 * For that, the package's `fetch` sends the request and then throws: `doStream` ends there. What it had prepared, the warnings and the
 * request's body, is noted where its `getArgs` returns. If the model refuses, `doStream` is called once more and gets the refusal. A
 * package that has no `getArgs`, or passes on another signal, reads the answer itself.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { RequestFacts, StreamDecoder } from './decode/decoder.ts'
import type { BodySink, PushBody } from './http/push-body.ts'
import { readStream } from './model-read.ts'
import type { DirectModel, PartSink } from './part-sink.ts'
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
interface Call {
  prepared: Prepared | undefined
  /** The request, once the package has made it. */
  sent: { url: string; init: RequestInit; opened: Promise<Opened> } | undefined
  /** The answer to give to the package instead of sending the request. */
  replay: Promise<Opened> | undefined
}

/** What the packages' `getArgs` resolves with. */
interface Prepared {
  args: Record<string, unknown>
  warnings: Warnings
}

/** Thrown by `fetch` to end `doStream`. Made once, since its stack says nothing. */
const requestSent = new Error('The request has been sent; its answer is read elsewhere.')

/** Creates the package's model. `watch` must get the bare one. */
export type CreateModel = (
  fetch: typeof globalThis.fetch,
  watch: (bare: LanguageModelV4) => LanguageModelV4,
) => LanguageModelV4

export interface DirectModelOptions {
  create: CreateModel
  open: Open
  createDecoder: CreateDecoder
}

export function createDirectModel({ create, open, createDecoder }: DirectModelOptions): DirectModel {
  const calls = new WeakMap<AbortSignal, Call>()

  const callOf = (signal: AbortSignal | null | undefined) => (signal ? calls.get(signal) : undefined)

  const send: typeof fetch = async (input, init = {}) => {
    const call = callOf(init.signal)
    if (call?.replay !== undefined) return (await call.replay).toResponse()
    const opened = open(input, init)
    if (call?.prepared === undefined) return (await opened).toResponse()
    // Whoever waits for it handles the failure.
    opened.catch(() => undefined)
    call.sent = { url: input instanceof Request ? input.url : String(input), init, opened }
    throw requestSent
  }

  const model = create(send, (bare) => {
    notePreparations(bare, (signal, prepared) => {
      const call = callOf(signal)
      if (call !== undefined) call.prepared = prepared
    })
    return bare
  })

  const target: Target = { model, open, createDecoder, calls }
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (options) => model.doGenerate(options),
    doStream: (options) => model.doStream(options),
    readInto(options, sink) {
      const call = new DirectCall(target, options, sink)
      call.start()
      return (reason) => call.stop(reason)
    },
  }
}

/** What all calls of a model share. */
interface Target extends Omit<DirectModelOptions, 'create'> {
  model: LanguageModelV4
  calls: WeakMap<AbortSignal, Call>
}

/** A class, because its functions would cost each open answer more than what it knows. */
class DirectCall implements Call, BodySink {
  prepared: Call['prepared'] = undefined
  sent: Call['sent'] = undefined
  replay: Call['replay'] = undefined
  readonly #target: Target
  readonly #options: LanguageModelV4CallOptions
  readonly #sink: PartSink
  readonly #controller = new AbortController()
  #stopReading: ((reason: unknown) => void) | undefined = undefined
  #decoder: ContinuedDecoder | undefined = undefined
  #body: PushBody | undefined = undefined
  #hasEmitted = false

  constructor(target: Target, options: LanguageModelV4CallOptions, sink: PartSink) {
    this.#target = target
    this.#options = options
    this.#sink = sink
  }

  start(): void {
    this.#ask().catch((error: unknown) => this.#giveUp(error))
  }

  stop(reason: unknown): void {
    this.#stopReading?.(reason)
    this.#controller.abort(reason)
  }

  /** An error of the package or a decoder: in place of an answer it is a refusal. */
  #giveUp(error: unknown): void {
    this.#sink.fail(error, this.#hasEmitted ? 'stream' : 'request')
  }

  async #ask(): Promise<void> {
    const { model, calls, createDecoder } = this.#target
    calls.set(this.#controller.signal, this)
    try {
      // The package could not be watched, or this call has ended before its request: it reads the answer itself.
      return this.#readPackage((await this.#callPackage()).stream)
    } catch (error) {
      if (error !== requestSent) throw error
    }
    const { args, warnings } = this.prepared!
    const { url, opened: opening } = this.sent!
    const opened = await opening.catch(() => undefined)
    if (this.#sink.isOver()) return
    this.#decoder =
      opened === undefined || !isReadable(opened)
        ? undefined
        : createDecoder({
            provider: model.provider,
            options: this.#options,
            warnings,
            request: { url, body: args, responseHeaders: Object.fromEntries(opened.headers) },
            emit: (part) => {
              this.#hasEmitted = true
              this.#sink.part(part)
            },
          })
    if (this.#decoder === undefined) {
      this.replay = opening
      return this.#readPackage((await this.#callPackage()).stream)
    }
    this.#read(opened!)
  }

  #callPackage() {
    return this.#target.model.doStream({ ...this.#options, abortSignal: this.#controller.signal })
  }

  #readPackage(stream: ReadableStream<LanguageModelV4StreamPart>): void {
    this.#stopReading = readStream(stream, this.#sink)
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
    const { url, init } = this.sent!
    const body = JSON.stringify({ ...this.prepared!.args, continuationToken: token })
    const next = this.#target.open(url, { ...init, body })
    const answer = await next.catch(() => undefined)
    if (answer !== undefined && isReadable(answer)) return answer
    this.replay = next
    await this.#callPackage()
    throw new Error('unreachable: the package accepts an answer that is none')
  }

  #finish(): void {
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

/** Watches a method of the packages that their types do not show. */
function notePreparations(
  bare: LanguageModelV4,
  note: (signal: AbortSignal | undefined, prepared: Prepared) => void,
): void {
  const watched = bare as { getArgs?: (options: LanguageModelV4CallOptions, ...rest: unknown[]) => Promise<Prepared> }
  const { getArgs } = watched
  if (typeof getArgs !== 'function') return
  watched.getArgs = async (options, ...rest) => {
    const prepared = await getArgs.call(bare, options, ...rest)
    const isKnown = typeof prepared?.args === 'object' && Array.isArray(prepared.warnings)
    if (isKnown) note(options?.abortSignal, prepared)
    return prepared
  }
}

/** The package reports anything else as a failed request. */
function isReadable({ status }: Opened): boolean {
  return status >= 200 && status < 300 && status !== 204 && status !== 205
}

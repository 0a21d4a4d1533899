/**
 * A provider package's model whose answers we read ourselves. The package builds the request and reads refusals; the decoder of its
 * protocol (`decode/`) reads the answer.
 *
 * For that, the package's `fetch` sends the request but answers at once with an empty body: `doStream` then reports the warnings and
 * the request's body while the model is still thinking. If the model refuses, `doStream` is called once more and gets the refusal.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { RequestFacts, StreamDecoder } from './decode/decoder.ts'
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

/** One call, found by the signal that the package passes on to `fetch`. */
interface Call {
  /** The request, once the package has made it. */
  sent?: { url: string; init: RequestInit; opened: Promise<Opened>; forget(): void }
  /** The answer to give to the package instead of sending the request. */
  replay?: Promise<Opened>
}

/** An event stream without events. `readsAhead`: it ends at once. */
function emptyAnswer(readsAhead: boolean): { response: Response; forget(): void } {
  let end: ReturnType<typeof setTimeout> | undefined
  // What the package does with the end of a body costs as much as all else it does, so it comes later, and usually never.
  const body = readsAhead
    ? new Uint8Array()
    : new ReadableStream<Uint8Array>({
        start: (controller) => void (end = setTimeout(() => controller.close())),
      })
  const response = new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  return { response, forget: () => clearTimeout(end) }
}

export interface DirectModelOptions {
  /** Creates the package's model. */
  create(fetch: typeof globalThis.fetch): LanguageModelV4
  open: Open
  createDecoder: CreateDecoder
  /** Whether the package waits for events before `doStream` resolves. */
  readsAhead: boolean
}

export function createDirectModel({ create, open, createDecoder, readsAhead }: DirectModelOptions): DirectModel {
  const calls = new WeakMap<AbortSignal, Call>()

  const model = create(async (input, init = {}) => {
    const call = init.signal ? calls.get(init.signal) : undefined
    if (call === undefined) return (await open(input, init)).toResponse()
    if (call.replay !== undefined) return (await call.replay).toResponse()
    const opened = open(input, init)
    // Whoever waits for it handles the failure.
    opened.catch(() => undefined)
    const { response, forget } = emptyAnswer(readsAhead)
    call.sent = { url: input instanceof Request ? input.url : String(input), init, opened, forget }
    return response
  })

  function readInto(options: LanguageModelV4CallOptions, sink: PartSink): (reason: unknown) => void {
    const controller = new AbortController()
    const { signal } = controller
    let stopReading: ((reason: unknown) => void) | undefined
    let hasEmitted = false
    /** Of the package or a decoder: an error in place of an answer is a refusal. */
    const fail = (error: unknown) => sink.fail(error, hasEmitted ? 'stream' : 'request')

    function readPackage(stream: ReadableStream<LanguageModelV4StreamPart>): void {
      stopReading = readStream(stream, sink)
    }

    async function start(): Promise<void> {
      const call: Call = {}
      calls.set(signal, call)
      const { stream, request } = await model.doStream({ ...options, abortSignal: signal })
      // The package did not pass on the signal, so it reads the real answer.
      if (call.sent === undefined) return readPackage(stream)
      const warnings = await warningsIn(stream)
      call.sent.forget()
      const { url, init, opened: opening } = call.sent
      const opened = await opening.catch(() => undefined)
      if (sink.isOver()) return
      const decoder =
        opened === undefined || !isReadable(opened)
          ? undefined
          : createDecoder({
              provider: model.provider,
              options,
              warnings,
              request: { url, body: request?.body, responseHeaders: Object.fromEntries(opened.headers) },
              emit(part) {
                hasEmitted = true
                sink.part(part)
              },
            })
      if (decoder === undefined) {
        call.replay = opening
        return readPackage((await model.doStream({ ...options, abortSignal: signal })).stream)
      }
      read(opened!, decoder, async (token) => {
        const body = JSON.stringify({ ...(request?.body as object), continuationToken: token })
        const next = open(url, { ...init, body })
        const answer = await next.catch(() => undefined)
        if (answer !== undefined && isReadable(answer)) return answer
        call.replay = next
        await model.doStream({ ...options, abortSignal: signal })
        throw new Error('unreachable: the package accepts an answer that is none')
      })
    }

    function read(opened: Opened, decoder: ContinuedDecoder, next: (token: string) => Promise<Opened>): void {
      const body = opened.body()
      body.start({
        bytes(bytes) {
          try {
            decoder.push(bytes)
          } catch (error) {
            fail(error)
            return true
          }
          const wait = sink.ready()
          if (wait === undefined) return true
          void wait.then(body.resume)
          return false
        },
        end() {
          const token = decoder.continuation?.()
          if (token === undefined) return end(decoder)
          next(token)
            .then(
              (answer) => {
                if (sink.isOver()) return
                decoder.continued!()
                read(answer, decoder, next)
              },
              (error: unknown) => {
                decoder.failed!(error)
                end(decoder)
              },
            )
            .catch(fail)
        },
        fail: (error) => sink.fail(error, 'stream'),
      })
    }

    function end(decoder: StreamDecoder): void {
      try {
        decoder.end()
      } catch (error) {
        return fail(error)
      }
      sink.end()
    }

    start().catch(fail)
    return (reason) => {
      stopReading?.(reason)
      controller.abort(reason)
    }
  }

  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (options) => model.doGenerate(options),
    doStream: (options) => model.doStream(options),
    readInto,
  }
}

async function warningsIn(stream: ReadableStream<LanguageModelV4StreamPart>): Promise<Warnings> {
  // It is not cancelled, because the packages make errors of that. It has no answer and nothing behind it.
  const { value } = await stream.getReader().read()
  return value?.type === 'stream-start' ? value.warnings : []
}

/** The package reports anything else as a failed request. */
function isReadable({ status }: Opened): boolean {
  return status >= 200 && status < 300 && status !== 204 && status !== 205
}

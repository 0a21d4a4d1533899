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
  prepared?: Prepared
  /** The request, once the package has made it. */
  sent?: { url: string; init: RequestInit; opened: Promise<Opened> }
  /** The answer to give to the package instead of sending the request. */
  replay?: Promise<Opened>
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
      try {
        // The package could not be watched, or this call has ended before its request: it reads the answer itself.
        return readPackage((await model.doStream({ ...options, abortSignal: signal })).stream)
      } catch (error) {
        if (error !== requestSent) throw error
      }
      const { args, warnings } = call.prepared!
      const { url, init, opened: opening } = call.sent!
      const opened = await opening.catch(() => undefined)
      if (sink.isOver()) return
      const decoder =
        opened === undefined || !isReadable(opened)
          ? undefined
          : createDecoder({
              provider: model.provider,
              options,
              warnings,
              request: { url, body: args, responseHeaders: Object.fromEntries(opened.headers) },
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
        const body = JSON.stringify({ ...args, continuationToken: token })
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

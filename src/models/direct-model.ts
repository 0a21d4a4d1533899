/**
 * A provider package's model whose answers Millrace reads itself. The package builds the request: its `fetch` captures it, and gets an empty
 * response. Millrace sends it, and reads the answer or the refusal (`decode/`).
 */
import {
  APICallError,
  EmptyResponseBodyError,
  type LanguageModelV4,
  type LanguageModelV4CallOptions,
  type LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import { hasLaterSystem, shapeCall, type CallShape } from './call-shape.ts'
import type { BodySink, PushBody } from './http/push-body.ts'
import { hasOurCache, isAboutCache, type CacheWay } from './prompt-cache.ts'
import type { ReadLimits } from './limits/read-limits.ts'
import type { DirectModel, PartSink } from './part-sink.ts'
import type { Open, Opened } from './provider-fetch.ts'
import type { CreateReader, ProtocolReader } from './readers.ts'
import type { Emit } from './decode/answer-reader.ts'
import { fieldsOf, listOf, parsed, textOf } from './decode/fields.ts'

/** Creates the package's model. */
export type CreateModel = (fetch: typeof globalThis.fetch) => LanguageModelV4

export interface DirectModelOptions {
  create: CreateModel
  open: Open
  createReader: CreateReader
  /** The shape of its calls. A server that refuses a later system message, or a mark for caching, gets none any more. */
  shape: CallShape
  cacheWay: CacheWay | undefined
  who: string
  limits?: ReadLimits | undefined
}

/** ms to wait for the counts of an otherwise complete answer. */
const graceForUsage = 1000
/** ms that a body may take to end after its answer: then the connection can be reused. */
const graceForEnd = 100

export function createDirectModel(options: DirectModelOptions): DirectModel {
  const calls: Calls = new Map()
  const model = options.create(async (input, init = {}) => {
    const note = init.signal && calls.get(init.signal)
    if (!note) return (await options.open(input, init)).toResponse()
    note({ url: input instanceof Request ? input.url : String(input), init })
    return new Response('', emptyAnswer)
  })
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    cacheWay: options.cacheWay,
    doGenerate: (call) => model.doGenerate(shapeCall(call, options.shape)),
    doStream: (call) => model.doStream(shapeCall(call, options.shape)),
    readInto(call, sink) {
      const direct = new DirectCall({ ...options, model, calls }, call, sink)
      void direct.start()
      return (reason) => direct.stop(reason)
    },
  }
}

interface SentRequest {
  url: string
  init: RequestInit
}

/** The calls whose requests the package is building, by the signal that it passes on to `fetch`. */
type Calls = Map<AbortSignal, (sent: SentRequest) => void>

interface Target extends DirectModelOptions {
  model: LanguageModelV4
  calls: Calls
}

/** A class, not closures: one for each open stream (decisions/0028). */
class DirectCall implements BodySink {
  readonly #options: Target
  readonly #call: LanguageModelV4CallOptions
  readonly #sink: PartSink
  readonly #controller = new AbortController()
  #sent: SentRequest | undefined = undefined
  #reader: ProtocolReader | undefined = undefined
  #body: PushBody | undefined = undefined
  /** Runs once the answer is complete except for its counts, then until the body ends. */
  #grace: ReturnType<typeof setTimeout> | undefined = undefined
  #isOver = false

  constructor(options: Target, call: LanguageModelV4CallOptions, sink: PartSink) {
    this.#options = options
    this.#call = call
    this.#sink = sink
  }

  async start(): Promise<void> {
    try {
      await this.#ask()
    } catch (error) {
      this.#sink.fail(error, 'request')
    }
  }

  async #ask(): Promise<void> {
    const { open, model, calls, shape, createReader } = this.#options
    const { signal } = this.#controller
    let opened: Promise<Opened> | undefined
    calls.set(signal, (sent) => {
      this.#sent = sent
      opened ??= open(sent.url, sent.init)
      // Awaited below; until then its failure would be unhandled.
      opened.catch(() => undefined)
    })
    const call = shapeCall(this.#call, shape)
    const { stream } = await Promise.resolve(model.doStream({ ...call, abortSignal: signal })).finally(() =>
      calls.delete(signal),
    )
    const warnings = await warningsOf(stream)
    if (opened === undefined) throw new Error('The package has sent no request.')
    const answer = await opened
    if (this.#sink.isOver()) return
    if (!isAnswer(answer)) {
      const refusal = await refusalOf(answer, this.#sent!.url)
      if (!adapt(shape, refusal, this.#call)) throw refusal
      return this.#ask()
    }
    const { provider } = model
    this.#reader = createReader({
      ...this.#options,
      provider,
      call,
      warnings,
      headers: answer.headers,
      emit: this.#emitter(),
    })
    this.#read(answer)
  }

  #emitter(): (part: LanguageModelV4StreamPart) => void {
    let hasBegun = false
    const emit = (part: LanguageModelV4StreamPart) => {
      // An error instead of an answer: no part was emitted, so the client gets a status.
      if (!hasBegun && part.type === 'error') return this.#sink.fail(part.error, 'part')
      hasBegun ||= part.type !== 'ping'
      this.#sink.part(part)
    }
    const { body } = this.#sent!.init
    const tool = typeof body === 'string' ? answerToolIn(body, this.#call) : undefined
    return tool === undefined ? emit : answerFromTool(tool, emit)
  }

  stop(reason: unknown): void {
    // Nothing is left to stop, and each abort costs an event.
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#grace)
    this.#controller.abort(reason)
  }

  #read(answer: Opened): void {
    this.#body = answer.body()
    this.#body.start(this)
  }

  bytes(bytes: Uint8Array): boolean {
    const reader = this.#reader!
    if (isDone(reader)) return true
    const before = reader.emitted
    try {
      reader.push(bytes)
    } catch (error) {
      this.#sink.fail(error, 'stream')
      return true
    }
    if (isDone(reader)) {
      this.#answered()
      return true
    }
    if (reader.state === 'ending' && (this.#grace === undefined || reader.emitted > before)) {
      clearTimeout(this.#grace)
      this.#grace = setTimeout(this.#onQuiet, graceForUsage)
    }
    const wait = this.#sink.ready()
    if (wait === undefined) return true
    void wait.then(this.#resume)
    return false
  }

  readonly #resume = (): void => this.#body!.resume()

  /** The counts did not come. */
  readonly #onQuiet = (): void => {
    const body = this.#body!
    this.end()
    if (this.#body === body) this.#drop()
  }

  /** The body has ended. */
  end(): void {
    clearTimeout(this.#grace)
    const reader = this.#reader!
    if (reader.state === 'done') {
      this.#isOver = true
      return
    }
    const token = reader.continuation?.()
    if (token !== undefined) return void this.#continue(token)
    reader.end()
    this.#isOver = true
    this.#sink.end()
  }

  /** The answer is complete. Its body has a moment to end, so that the connection is reused; then it is closed. */
  #answered(): void {
    clearTimeout(this.#grace)
    this.#grace = setTimeout(this.#drop, graceForEnd)
    this.#grace.unref()
    this.#isOver = true
    this.#sink.end()
  }

  readonly #drop = (): void => this.#body?.cancel('the answer is complete')

  async #continue(token: string): Promise<void> {
    try {
      const { url, init } = this.#sent!
      const body = JSON.stringify({ ...(JSON.parse(init.body as string) as object), continuationToken: token })
      const answer = await this.#options.open(url, { ...init, body })
      if (this.#sink.isOver()) return
      if (!isAnswer(answer)) throw await refusalOf(answer, url)
      this.#reader!.continued!()
      this.#grace = undefined
      this.#read(answer)
    } catch (error) {
      this.#sink.fail(error, 'stream')
    }
  }

  /** The body has failed. After the end of the answer this is ignored. */
  fail(error: unknown): void {
    const { state } = this.#reader!
    if (state === 'done') return
    if (state === 'ending') return this.end()
    this.#isOver = true
    this.#sink.fail(error, 'stream')
  }
}

const emptyAnswer = { headers: { 'content-type': 'text/event-stream' } }

async function warningsOf(stream: ReadableStream<LanguageModelV4StreamPart>) {
  const reader = stream.getReader()
  const { value } = await reader.read()
  void reader.cancel().catch(() => undefined)
  return value?.type === 'stream-start' ? value.warnings : []
}

function isDone({ state }: ProtocolReader): boolean {
  return state === 'done'
}

function isAnswer({ status }: Opened): boolean {
  return status >= 200 && status < 300 && status !== 204 && status !== 205
}

async function refusalOf(answer: Opened, url: string): Promise<Error> {
  if (answer.status === 204 || answer.status === 205) return new EmptyResponseBodyError()
  const response = answer.toResponse()
  return new APICallError({
    message: response.statusText,
    url,
    requestBodyValues: {},
    statusCode: response.status,
    responseHeaders: Object.fromEntries(response.headers),
    responseBody: await response.text(),
  })
}

/** Changes the shape if that may cure the refusal. Each change is made once. */
function adapt(shape: CallShape, refusal: Error, call: LanguageModelV4CallOptions): boolean {
  if (isAboutRoles(refusal) && !shape.laterAsUser && hasLaterSystem(call)) {
    shape.laterAsUser = true
    return true
  }
  const { statusCode, responseBody = '' } = APICallError.isInstance(refusal) ? refusal : {}
  if (isAboutCache(statusCode, responseBody) && !shape.withoutCache && hasOurCache(call)) {
    shape.withoutCache = true
    return true
  }
  return false
}

/** "System message must be at the beginning." */
function isAboutRoles(refusal: Error): boolean {
  if (!APICallError.isInstance(refusal)) return false
  const { statusCode, responseBody = '' } = refusal
  return (statusCode === 400 || statusCode === 422) && /\b(system|developer|roles?)\b/iu.test(responseBody)
}

/*
 * Some models cannot answer in JSON: their package adds a tool to the request, and the model calls it with the answer. The arguments of that call
 * are the text. The model's own text is the answer only if it does not call the tool.
 */

/** The tool that the package has added to the request's body, if any. */
function answerToolIn(body: string, { tools = [], responseFormat }: LanguageModelV4CallOptions): string | undefined {
  if (responseFormat?.type !== 'json') return undefined
  const sent = listOf(fieldsOf(parsed(body))?.['tools'])
  const declared = sent.flatMap((tool) =>
    'functionDeclarations' in tool ? listOf(tool['functionDeclarations']) : [tool],
  )
  const names = declared.map(({ name }) => textOf(name))
  return names.find((name) => name !== undefined && tools.every((tool) => tool.name !== name))
}

function answerFromTool(tool: string, emit: Emit): Emit {
  const answers = new Set<string>()
  const withText = new Set<string>()
  let held: LanguageModelV4StreamPart[] = []
  let hasCalls = false

  return (part) => {
    switch (part.type) {
      case 'text-start':
      case 'text-delta':
      case 'text-end':
        held.push(part)
        return
      case 'tool-input-start':
        if (part.toolName !== tool) break
        answers.add(part.id)
        return emit({ type: 'text-start', id: part.id })
      case 'tool-input-delta':
        if (!answers.has(part.id)) break
        withText.add(part.id)
        return emit({ type: 'text-delta', id: part.id, delta: part.delta })
      case 'tool-input-end':
        if (answers.has(part.id)) return
        break
      case 'tool-call': {
        const { toolCallId: id, toolName, input } = part
        if (toolName === tool) {
          if (!withText.has(id)) emit({ type: 'text-delta', id, delta: input })
          return emit({ type: 'text-end', id })
        }
        hasCalls ||= part.providerExecuted !== true
        break
      }
      case 'finish': {
        if (answers.size === 0) for (const each of held) emit(each)
        held = []
        const isAnswer = answers.size > 0 && !hasCalls && part.finishReason.unified === 'tool-calls'
        if (isAnswer) return emit({ ...part, finishReason: { ...part.finishReason, unified: 'stop' } })
        break
      }
      default:
    }
    emit(part)
  }
}

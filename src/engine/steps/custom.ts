/**
 * Runs a step type registered by a config or a pack. Handlers follow the Beddel contract:
 * `(config, context) => Promise<Response | value>`.
 *
 * A handler that is itself a generator function (`async function*`) yields parts. Its return value is treated like that of any
 * other handler: a `Response`, a stream or another async iterable is the answer and ends the pipeline; anything else is the
 * step's value. The handler's kind decides, because its result cannot: a relay or a generator of text that a handler
 * passes on looks like a generator of parts.
 */
import { MillraceError } from '../../part/error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { SourcePart, ResponseHead } from '../../part/part.ts'
import { joinPath } from '../../part/path.ts'
import { createNormaliser } from '../../fold/normalise.ts'
import { keepCookies } from '../live-cookies.ts'
import { isStream, toReader, type SourceReader } from '../../relay/source-reader.ts'
import { inStep, type Scope, Suspended } from '../scope.ts'
import type { ExecutionContext, PrimitiveHandler, Question, QuestionAnswer } from '../registry.ts'
import { withBuiltin, type RunBuiltin } from './builtin-handlers.ts'
import type { EntryOf } from '../../part/entry.ts'

export interface CustomResult {
  value: unknown
  /** The handler's stream was sent as the answer. */
  answered: boolean
}

/** The built-in that a handler replaces. */
export interface Replaced {
  builtin: RunBuiltin
  /** Resolves when all calls of the built-in have ended. */
  settled(): Promise<unknown>
  hasAnswered(): boolean
}

export async function runCustom(
  scope: Scope,
  path: string,
  handler: PrimitiveHandler,
  config: unknown,
  replaced?: Replaced,
): Promise<CustomResult> {
  const { signal, variables, runId, threadId, registry, input } = scope
  const answerPath = joinPath(path, 1)
  // The answer would begin again with the handler: what clients have read cannot be taken back.
  const hasSpoken = () => [...scope.state.open.texts.values()].includes(answerPath)
  const questions = createQuestions(scope, path, hasSpoken)
  const context: ExecutionContext = {
    input,
    variables,
    signal,
    runId,
    threadId,
    ...omitUndefined({ user: scope.state.start?.user }),
    tools: registry.tools,
    emit: (part) => emitChecked(scope, path, part),
    model: (name) => registry.models.resolve(name),
    request: questions.request,
  }
  const given = handler(config, replaced === undefined ? context : withBuiltin(context, replaced.builtin))
  const value = await questions.unlessSuspended(
    isGenerator(handler) ? readSource(scope, toReader(given), (part) => emitChecked(scope, path, part)) : given,
  )
  const returned = toAnswer(value)
  if (returned === undefined) return { value, answered: false }
  if (signal.aborted) {
    // Too late to be read, but still open.
    returned.body.dispose()
    throw signal.reason
  }
  if (replaced !== undefined) {
    await replaced.settled()
    if (replaced.hasAnswered()) {
      returned.body.dispose()
      const cure = 'Return the value of the built-in, or do not call it.'
      throw new MillraceError(
        'bad-response',
        `it returned a stream, but the built-in that it called has already streamed the answer. ${cure}`,
      )
    }
  }
  const { head, cookies = [] } = returned
  keepCookies(runId, cookies)
  const start = omitUndefined({ stepType: 'stream', kind: 'custom' as const, answer: true as const, head })
  const text = await inStep(scope, answerPath, start, async () => ({
    value: head?.binary
      ? await recordBytes(scope, answerPath, returned)
      : await streamAnswer(scope, answerPath, returned),
  }))
  return { value: { text }, answered: true }
}

/** Checks the class name, which works across realms and for bound functions. */
function isGenerator(handler: PrimitiveHandler): boolean {
  return Object.prototype.toString.call(handler).endsWith('GeneratorFunction]')
}

async function streamAnswer(scope: Scope, path: string, answer: StepResponse): Promise<string> {
  const { body, decoder = new TextDecoder() } = answer
  const { emit, newId, state } = scope
  const { open, callIds } = state
  const normaliser = createNormaliser({ path, emit, newId, open, callIds })
  let text = ''
  const emitText = (delta: string) => {
    if (delta === '') return
    normaliser.part({ type: 'text-delta', id: 'text', delta })
    text += delta
  }
  const returned = await readSource(scope, body, (item) => {
    if (typeof item === 'string') emitText(item)
    // By shape: the bytes may come from another realm.
    else if (ArrayBuffer.isView(item)) emitText(decoder.decode(item, { stream: true }))
    else if (isEmittable(scope, path, item)) normaliser.part(item)
  })
  emitText(decoder.decode())
  normaliser.end()
  if (text === '' && returned !== undefined) {
    // For example, a handler that returns another function's generator of parts.
    const cure = 'To yield parts and return a value, make the handler itself an `async *` function.'
    const message = `This step returned a stream without text; the return value of that stream is discarded. ${cure}`
    scope.emit(path, { type: 'warning', code: 'value-lost', message })
  }
  return text
}

/** Maximum size of a binary body, which is recorded as a single part. */
const mostBytes = 16 * 1024 * 1024

/** Records a binary body as a file. Returns an empty text. */
async function recordBytes(scope: Scope, path: string, { body, mediaType }: StepResponse): Promise<string> {
  const pieces: Uint8Array<ArrayBuffer>[] = []
  const utf8 = new TextEncoder()
  let length = 0
  await readSource(scope, body, (item) => {
    // By shape: the bytes may come from another realm.
    const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(item) ? item : utf8.encode(String(item))
    const piece = new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength)
    length += piece.length
    if (length > mostBytes) {
      const cure = 'Return a redirect to the file instead.'
      throw new MillraceError('too-large', `its Response has a binary body of more than ${mostBytes} bytes. ${cure}`)
    }
    pieces.push(piece)
  })
  if (length === 0) return ''
  const data = new Uint8Array(await new Blob(pieces).arrayBuffer())
  scope.emit(path, { type: 'file', mediaType: mediaType ?? 'application/octet-stream', data })
  return ''
}

/** Reads a source to its end and resolves with its return value. If reading stops early, the source is closed. */
async function readSource(
  scope: Scope,
  source: SourceReader<unknown>,
  receive: (item: unknown) => void,
): Promise<unknown> {
  const { signal } = scope
  let open = true
  const close = () => {
    if (open) source.dispose()
    open = false
  }
  // Close at once, because a silent source would block forever. Its cleanup gets the grace period of stopped steps.
  signal.addEventListener('abort', close, { once: true })
  try {
    for (;;) {
      signal.throwIfAborted()
      const { done, value } = await source.next()
      signal.throwIfAborted()
      if (done) {
        open = false
        source.release?.()
        return value
      }
      receive(value)
      await scope.ready()
    }
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
}

/** Parts that a step may emit. Only the runner starts and finishes runs and steps. */
const allowed: ReadonlySet<string> = new Set<SourcePart['type']>([
  'data',
  'source',
  'file',
  'warning',
  'raw',
  'cli-output',
  'session-info',
])

function emitChecked(scope: Scope, path: string, part: unknown): void {
  if (isEmittable(scope, path, part)) scope.emit(path, part)
}

function isEmittable(scope: Scope, path: string, part: unknown): part is SourcePart {
  const type = (part as { type?: unknown } | null)?.type
  if (typeof type !== 'string' || !allowed.has(type)) {
    const cure = `A step may emit ${[...allowed].join(', ')}. To send text, return a stream.`
    const what = JSON.stringify(type) ?? 'a value that is not a part'
    throw new MillraceError('bad-part', `it emitted ${what}. ${cure}`)
  }
  // Ignore parts from a step that was stopped or has ended.
  return !scope.signal.aborted && scope.state.open.steps.has(path)
}

/** A stream, with metadata if it is the body of a `Response`. */
type StepResponse = Pick<ReturnedResponse, 'body'> & Partial<ReturnedResponse>

/** Undefined for a plain value. Throws for an unreadable stream or `Response`, after closing it. */
function toAnswer(value: unknown): StepResponse | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (isResponse(value)) return readResponse(value)
  return Symbol.asyncIterator in value || isStream(value) ? { body: toReader(value) } : undefined
}

/**
 * Sends a `Response` returned by a step as the answer. A `Response` that the step created is sent with its status, headers and
 * body. A fetched `Response` with an error status fails the step, because the error concerns the step's request, not the client's.
 */
interface ReturnedResponse {
  head: ResponseHead
  body: SourceReader<unknown>
  /** Decodes the body to text. */
  decoder: TextDecoder
  mediaType: string
  cookies: readonly string[]
}

/** Headers of a single connection (RFC 9110, 7.6.1), headers that our server sets itself, and credentials. */
const dropped = new Set(
  'connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade content-length date x-millrace-run-id set-cookie set-cookie2'.split(
    ' ',
  ),
)
/** Headers of a fetched response that only apply to the other server or its origin. */
const foreign = /^(?:access-control-.*|alt-svc|strict-transport-security|content-encoding)$/u

const textTypes =
  /^(?:text\/.*|application\/(?:.*\+)?(?:json|xml|yaml|x-yaml|javascript|ecmascript|graphql|x-ndjson|jsonl|x-www-form-urlencoded)|image\/svg\+xml)$/u

/** Checks the shape, because the object may come from another realm. */
function isResponse(value: object): value is Response {
  return 'headers' in value && 'status' in value && 'body' in value && typeof (value as Response).text === 'function'
}

/** Throws `bad-response`, after closing the body, if the response cannot be sent. */
function readResponse(response: Response): ReturnedResponse {
  const { body, bodyUsed, status, statusText, url } = response
  const wasFetched = typeof url === 'string' && url !== ''
  const reader = toReader<unknown>(bodyUsed ? [] : (body ?? []))
  const bad = (why: string) => {
    reader.dispose()
    return new MillraceError('bad-response', why)
  }
  if (bodyUsed) throw bad('its Response has already been read. Return a clone of it, or the data that was read.')
  const isStatus = Number.isInteger(status) && status >= 200 && status <= 599
  if (!isStatus || (wasFetched && status >= 400)) throw bad(`its Response has status ${status}.`)

  const given = [...response.headers].map(([name, value]) => [name.toLowerCase(), value] as const)
  const all = new Map(given)
  const connection = new Set((all.get('connection') ?? '').split(',').map((name) => name.trim().toLowerCase()))
  const type = all.get('content-type') ?? ''
  const mediaType = type.split(';')[0]!.trim().toLowerCase()
  // `fetch` has already decoded its body. A Response that the step created is sent in the encoding that it declares.
  const isEncoded = !wasFetched && !['', 'identity'].includes(all.get('content-encoding') ?? '')
  const isText = !isEncoded && (mediaType === '' || textTypes.test(mediaType))
  const headers = given
    .filter(([name]) => !dropped.has(name) && !connection.has(name) && !(wasFetched && foreign.test(name)))
    // Text is recorded and sent as UTF-8.
    .map(([name, value]): [string, string] => [
      name,
      isText && name === 'content-type' ? value.replace(/(;\s*charset=)(?!"?utf-8)[^;]*/iu, '$1utf-8') : value,
    ])
  const head: ResponseHead = { status, headers }
  if (typeof statusText === 'string' && statusText !== '') head.statusText = statusText
  if (!isText) head.binary = true
  return {
    head,
    body: reader,
    decoder: decoderOf(type),
    mediaType: mediaType === '' ? 'application/octet-stream' : mediaType,
    // Never pass on cookies of another server.
    cookies: wasFetched ? [] : (response.headers.getSetCookie?.() ?? []),
  }
}

function decoderOf(type: string): TextDecoder {
  const charset = /;\s*charset="?([^;"]+)/iu.exec(type)?.[1]?.trim() ?? 'utf-8'
  try {
    return new TextDecoder(charset, { ignoreBOM: true })
  } catch {
    return new TextDecoder('utf-8', { ignoreBOM: true })
  }
}

/**
 * `context.request`: a handler asks a person or a client for a value. A waiting run unwinds, so when the reply has come the handler is called again
 * from its start. Its n-th request is the n-th of the log: one that has ended returns at once.
 */
interface Questions {
  request: ExecutionContext['request']
  /** Resolves like the handler. Rejects with `Suspended` as soon as one of its requests does, even if the handler catches that. */
  unlessSuspended(handler: unknown): Promise<unknown>
}

function createQuestions(scope: Scope, path: string, hasSpoken: () => boolean): Questions {
  const suspended = Promise.withResolvers<never>()
  suspended.promise.catch(() => undefined)
  let count = 0
  // One at a time: a step is one branch of the run, which either waits or not.
  let last: Promise<unknown> = Promise.resolve()

  async function ask(n: number, { timeout, ...question }: Question): Promise<QuestionAnswer> {
    const known = scope.state.asked.get(path)?.[n]
    if (known?.response !== undefined) return toQuestionAnswer(known.response)
    if (hasSpoken()) {
      const cure = 'Ask before its first word, or return the text as a value.'
      throw new MillraceError('bad-handler', `A step cannot ask in the middle of its answer. ${cure}`)
    }
    if (scope.handOver) return { outcome: 'closed', reason: 'This run cannot wait for an answer.' }
    const requestId = known?.request.requestId ?? `${scope.runId}.${scope.newId()}`
    const deadline = known?.request.deadline ?? scope.now() + (timeout ?? scope.requestDeadline)
    try {
      const request = omitUndefined({ requestId, kind: 'input' as const, ...question, deadline })
      return toQuestionAnswer(await scope.request(path, request, scope.signal))
    } catch (error) {
      if (error instanceof Suspended) suspended.reject(error)
      throw error
    }
  }

  return {
    request(question = {}) {
      const n = count++
      const answer = last.then(() => ask(n, question))
      last = answer.catch(() => undefined)
      return answer
    },
    unlessSuspended: (handler) => Promise.race([handler, suspended.promise]),
  }
}

function toQuestionAnswer({ answer, reason = 'closed' }: EntryOf<'response'>): QuestionAnswer {
  if (answer?.kind !== 'input') return { outcome: 'closed', reason }
  return 'value' in answer ? { outcome: 'answered', value: answer.value } : { outcome: 'cancelled' }
}

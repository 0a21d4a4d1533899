/**
 * A step type registered by a config or a pack, by the Beddel contract: `(config, context) => Promise<Response | value>`.
 *
 * How a handler is written says what its items are. A generator itself (`async function*`) yields parts, and what it returns
 * is looked at like what any other handler returns or promises: a `Response`, a stream or another async iterable is the
 * answer, and ends the pipeline; all else is the step's value. What was returned could not tell: a relay, or a generator of
 * text that a handler only hands on, looks like a generator of parts.
 */
import { MillraceError } from '../../part/error.ts'
import type { Part } from '../../part/part.ts'
import { joinPath } from '../../part/path.ts'
import { keepCookies } from '../live-cookies.ts'
import { isStream, toReader, type SourceReader } from '../relay/source-reader.ts'
import { inStep, type Scope } from '../scope.ts'
import type { ExecutionContext, PrimitiveHandler } from '../ports.ts'
import { withBuiltin, type RunBuiltin } from './builtin-handlers.ts'
import { isResponse, readResponse, type ReturnedResponse } from './returned-response.ts'

export interface CustomResult {
  value: unknown
  /** The handler's stream was sent as the answer. */
  answered: boolean
}

/** The built-in that a handler has replaced. */
export interface Replaced {
  builtin: RunBuiltin
  /** Resolves when all of its runs have ended. */
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
  const context: ExecutionContext = {
    input,
    variables,
    signal,
    runId,
    threadId,
    tools: registry.tools,
    emit: (part) => emitChecked(scope, path, part),
    model: (name) => registry.models.resolve(name),
  }
  const given = handler(config, replaced === undefined ? context : withBuiltin(context, replaced.builtin))
  const value = isGenerator(handler)
    ? await readSource(scope, toReader(given), (part) => emitChecked(scope, path, part))
    : await given
  const returned = toAnswer(value)
  if (returned === undefined) return { value, answered: false }
  if (signal.aborted) {
    // It comes too late to be read, and is open all the same.
    returned.body.dispose()
    throw signal.reason
  }
  if (replaced !== undefined) {
    await replaced.settled()
    if (replaced.hasAnswered()) {
      returned.body.dispose()
      const cure = 'Return the value that the built-in gave, or do not call it.'
      throw new MillraceError(
        'bad-response',
        `it returned a stream after its built-in had streamed the answer. ${cure}`,
      )
    }
  }
  const answerPath = joinPath(path, 1)
  const { head, cookies = [] } = returned
  keepCookies(runId, cookies)
  const start = { stepType: 'stream', answer: true, ...(head === undefined ? undefined : { head }) } as const
  const text = await inStep(scope, answerPath, start, async () => ({
    value: head?.binary
      ? await recordBytes(scope, answerPath, returned)
      : await streamAnswer(scope, answerPath, returned),
  }))
  return { value: { text }, answered: true }
}

/** By its class's name, which no realm changes, and which `bind` keeps. */
function isGenerator(handler: PrimitiveHandler): boolean {
  return Object.prototype.toString.call(handler).endsWith('GeneratorFunction]')
}

async function streamAnswer(scope: Scope, path: string, answer: Answer): Promise<string> {
  const { body, decoder = new TextDecoder() } = answer
  let id: string | undefined
  let text = ''
  const say = (delta: string) => {
    if (delta === '') return
    if (id === undefined) scope.emit(path, { type: 'text-start', id: (id = scope.newId()) })
    scope.emit(path, { type: 'text-delta', id, delta })
    text += delta
  }
  const returned = await readSource(scope, body, (item) => {
    if (typeof item === 'string') say(item)
    // By shape: a Response may come from another realm, and its bytes with it.
    else if (ArrayBuffer.isView(item)) say(decoder.decode(item, { stream: true }))
    else emitChecked(scope, path, item)
  })
  say(decoder.decode())
  if (id !== undefined) scope.emit(path, { type: 'text-end', id })
  else if (returned !== undefined) {
    // As of a generator of parts that another handler only hands on.
    const cure = 'A step that yields parts and returns a value is an `async *` function itself.'
    const message = `The stream that this step returned had no text, and what it returned is lost. ${cure}`
    scope.emit(path, { type: 'warning', code: 'value-lost', message })
  }
  return text
}

/** Of a body that is no text; one part holds all of it. */
const mostBytes = 16 * 1024 * 1024

/** A body that is no text is recorded as a file, and has no text. */
async function recordBytes(scope: Scope, path: string, { body, mediaType }: Answer): Promise<string> {
  const pieces: Uint8Array<ArrayBuffer>[] = []
  const utf8 = new TextEncoder()
  let length = 0
  await readSource(scope, body, (item) => {
    // By shape: the bytes may come from another realm.
    const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(item) ? item : utf8.encode(String(item))
    const piece = new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength)
    length += piece.length
    if (length > mostBytes) {
      const cure = 'Answer with a redirect to the file instead.'
      throw new MillraceError('too-large', `its Response has more than ${mostBytes} bytes that are no text. ${cure}`)
    }
    pieces.push(piece)
  })
  if (length === 0) return ''
  const data = new Uint8Array(await new Blob(pieces).arrayBuffer())
  scope.emit(path, { type: 'file', mediaType: mediaType ?? 'application/octet-stream', data })
  return ''
}

/** Reads a source to its end, and gives what it returned. Whatever ends the reading before, the source is closed. */
async function readSource(
  scope: Scope,
  source: SourceReader<unknown>,
  take: (item: unknown) => void,
): Promise<unknown> {
  const { signal } = scope
  let open = true
  const leave = () => {
    if (open) source.dispose()
    open = false
  }
  // At once, since a silent source would wait for ever. One that cleans up behind it has the grace that stopped steps have.
  signal.addEventListener('abort', leave, { once: true })
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
      take(value)
      await scope.ready()
    }
  } finally {
    signal.removeEventListener('abort', leave)
    leave()
  }
}

/** Parts that a step may say itself; the brackets of runs and steps are the runner's. */
const allowed: ReadonlySet<string> = new Set<Part['type']>([
  'data',
  'source',
  'file',
  'warning',
  'raw',
  'cli-output',
  'session-info',
])

function emitChecked(scope: Scope, path: string, part: unknown): void {
  const type = (part as { type?: unknown } | null)?.type
  if (typeof type !== 'string' || !allowed.has(type)) {
    const cure = `A step may emit ${[...allowed].join(', ')}; text goes into a returned stream.`
    throw new MillraceError('bad-part', `it emitted ${JSON.stringify(type) ?? 'no part'}. ${cure}`)
  }
  // A step that speaks on after it was stopped, or after it has ended, speaks to nobody.
  if (scope.signal.aborted || !scope.state.open.steps.has(path)) return
  scope.emit(path, part as Part)
}

/** A stream, and what is known of it where it came in a Response. */
type Answer = Pick<ReturnedResponse, 'body'> & Partial<ReturnedResponse>

/** Undefined for a value. Throws for what cannot be read, and leaves nothing open. */
function toAnswer(value: unknown): Answer | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (isResponse(value)) return readResponse(value)
  return Symbol.asyncIterator in value || isStream(value) ? { body: toReader(value) } : undefined
}

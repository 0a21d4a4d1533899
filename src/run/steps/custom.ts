/**
 * A step type registered by a config or a pack, by the Beddel contract: `(config, context) => Promise<Response | value>`,
 * or an async generator of parts. A `Response`, a stream or another async iterable is the answer, and ends the pipeline.
 */
import { MillraceError } from '../../part/error.ts'
import type { Part } from '../../part/part.ts'
import { joinPath } from '../../part/path.ts'
import { inStep, type Scope } from '../scope.ts'
import type { PrimitiveHandler } from '../ports.ts'

export interface CustomResult {
  value: unknown
  /** The handler's stream was sent as the answer. */
  answered: boolean
}

export async function runCustom(
  scope: Scope,
  path: string,
  handler: PrimitiveHandler,
  config: unknown,
): Promise<CustomResult> {
  const { signal, variables, runId, threadId, registry, input } = scope
  const returned = handler(config, {
    input,
    variables,
    signal,
    runId,
    threadId,
    tools: registry.tools,
    emit: (part) => emitChecked(scope, path, part),
    model: (name) => registry.models.resolve(name),
  })
  const value = isGenerator(returned) ? await drain(scope, path, returned) : await returned
  const stream = toStream(value)
  if (stream === undefined) return { value, answered: false }
  const answerPath = joinPath(path, 1)
  const text = await inStep(scope, answerPath, { stepType: 'stream', answer: true }, async () => ({
    value: await streamAnswer(scope, answerPath, stream),
  }))
  return { value: { text }, answered: true }
}

async function drain(scope: Scope, path: string, generator: AsyncGenerator<Part, unknown>): Promise<unknown> {
  const { signal } = scope
  const leave = () => void generator.return(undefined).catch(() => undefined)
  signal.addEventListener('abort', leave, { once: true })
  try {
    for (;;) {
      const { done, value } = await generator.next()
      if (signal.aborted) throw signal.reason
      if (done) return value
      emitChecked(scope, path, value)
      await scope.ready()
    }
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

async function streamAnswer(scope: Scope, path: string, stream: AsyncIterable<unknown>): Promise<string> {
  const decoder = new TextDecoder()
  const iterator = stream[Symbol.asyncIterator]()
  const leave = () => void iterator.return?.().catch(() => undefined)
  const { signal } = scope
  let id: string | undefined
  let text = ''
  const say = (delta: string) => {
    if (delta === '') return
    if (id === undefined) scope.emit(path, { type: 'text-start', id: (id = scope.newId()) })
    scope.emit(path, { type: 'text-delta', id, delta })
    text += delta
  }
  signal.addEventListener('abort', leave, { once: true })
  try {
    for (;;) {
      const { done, value } = await iterator.next()
      if (signal.aborted) throw signal.reason
      if (done) break
      if (typeof value === 'string') say(value)
      else if (value instanceof Uint8Array) say(decoder.decode(value, { stream: true }))
      else emitChecked(scope, path, value)
      await scope.ready()
    }
    say(decoder.decode())
    if (id !== undefined) scope.emit(path, { type: 'text-end', id })
    return text
  } finally {
    signal.removeEventListener('abort', leave)
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

/** By shape, not by class: a Response may come from another realm. */
function toStream(value: unknown): AsyncIterable<unknown> | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if ('headers' in value && 'status' in value && 'body' in value && typeof (value as Response).text === 'function') {
    const { body, ok, status } = value as Response
    if (!ok) throw new MillraceError('bad-response', `its Response has the status ${status}.`)
    return body === null ? emptyStream() : toStream(body)
  }
  if (Symbol.asyncIterator in value) return value as AsyncIterable<unknown>
  if ('getReader' in value && typeof value.getReader === 'function') return readStream(value as ReadableStream<unknown>)
  return undefined
}

async function* emptyStream(): AsyncGenerator<never> {}

async function* readStream(stream: ReadableStream<unknown>): AsyncGenerator<unknown> {
  const reader = stream.getReader()
  let complete = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) {
        complete = true
        return
      }
      yield value
    }
  } finally {
    if (!complete) void reader.cancel().catch(() => undefined)
  }
}

function isGenerator(value: unknown): value is AsyncGenerator<Part, unknown> {
  return (
    typeof value === 'object' && value !== null && Symbol.asyncIterator in value && 'throw' in value && 'next' in value
  )
}

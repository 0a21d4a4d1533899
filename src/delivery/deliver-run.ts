/**
 * Delivers one run to one client, over any transport: presence, the cursor and its replay, the encoder, and the kind of response. Routes read the
 * request, continue or start a run, and respond with this.
 */
import { anySignal } from '../async/any-signal.ts'
import { type ErrorValue, toErrorValue, fromErrorValue } from '../part/error.ts'
import type { ResponseHead } from '../part/part.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import type { Piece, WireTraits } from '../wire/wire.ts'
import { type DeliveryContext, openDelivery, type OpenAnswer, type OpenOptions } from './open-delivery.ts'
import type { EntryOf } from '../part/entry.ts'
import { isUnder } from '../part/path.ts'
import { kindOf } from '../part/step-kind.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { closingError } from '../runtime/runtime-errors.ts'
import { createAnswering } from '../fold/answering.ts'
import type { RunReader } from './run-reader.ts'
import { runIdHeader, deliveryResponse } from './delivery-response.ts'
import { takeCookies } from '../engine/live-cookies.ts'
import { textWire } from '../wire/text/text.ts'

export interface AnswerOptions<Options extends object, Out extends Piece> extends OpenOptions<Options, Out> {
  policy: DisconnectPolicy
  /** Fires when the client disconnects. */
  signal: AbortSignal
  /** The agent may stream. If not, nothing is sent before the answer is complete. */
  streams: boolean
  /** The client also sees other steps, so the first model that accepts the request begins the answer. */
  showsSteps?: boolean
  /** A value of an agent without a stream is sent in the wire's frames. Default: the caller gets the value. */
  framesValue?: boolean
}

/** The response. `left`: the client disconnected first. */
export type AnsweredRun<Out extends Piece> =
  | { kind: 'stream'; answer: OpenAnswer<Out> }
  | { kind: 'value'; output: unknown }
  | { kind: 'error'; error: ErrorValue }
  /** A step's `Response`, unchanged. */
  | { kind: 'response'; response: Response }
  | { kind: 'left' }

export async function deliverRun<Options extends object, Out extends Piece>(
  context: DeliveryContext,
  request: AnswerOptions<Options, Out>,
): Promise<AnsweredRun<Out>> {
  const { runId, wire, streams, from = 0, signal, showsSteps = false, framesValue = false } = request
  const answer = await openDelivery(context, request)
  let isSent = false
  let isFinished = false
  try {
    const accepted = await awaitAcceptance(context.runtime, runId, {
      reader: answer.reader,
      streams,
      from,
      signal,
      showsSteps,
    })
    if (accepted.kind === 'left') return accepted
    isFinished = true
    if (accepted.kind === 'response' && isAnsweredAsItIs(accepted.head, wire)) {
      return { kind: 'response', response: await rawResponse(context, request, accepted.head) }
    }
    const isShown = accepted.kind === 'error' && accepted.error.code === 'aborted' && wire.showsAbort === true
    if (accepted.kind === 'error' && !isShown) return accepted
    if (accepted.kind === 'value' && !framesValue) return accepted
    isSent = true
    return { kind: 'stream', answer }
  } finally {
    if (!isSent) answer.drop(isFinished)
  }
}

function rawResponse<Options extends object, Out extends Piece>(
  context: DeliveryContext,
  { runId, policy, signal, from }: AnswerOptions<Options, Out>,
  head: ResponseHead,
): Promise<Response> {
  return stepResponse(context, { runId, head, policy, signal, ...(from !== undefined && { from }) })
}

/**
 * Decides the response before its first byte. A refused key or a rate limit must be a real 4xx/5xx, so the status waits until the answering model
 * accepts the request, for at most one second, because a silent stream looks broken.
 */
const patience = 1000

/** `left`: the client disconnected first. */
type Acceptance =
  | { kind: 'stream' }
  | { kind: 'left' }
  | { kind: 'value'; output: unknown }
  | { kind: 'error'; error: ErrorValue }
  /** A step returned a `Response`, and nothing has been sent. */
  | { kind: 'response'; head: ResponseHead }

interface AcceptanceOptions {
  /** Reads the run from its start or, if that is far, from `from`. Peeked entries are still delivered. */
  reader: RunReader
  /** The client also sees other steps, so the first model that accepts ends the wait. Default: only the answering one. */
  showsSteps?: boolean
  /** The agent may stream. If not, the wait has no time limit: it ends with the answer or the run. */
  streams: boolean
  /** First `seq` of this turn. */
  from: number
  signal: AbortSignal
}

async function awaitAcceptance(
  runtime: Runtime,
  runId: string,
  { reader, streams, from, signal, showsSteps = false }: AcceptanceOptions,
): Promise<Acceptance> {
  const { promise, resolve, reject } = Promise.withResolvers<Acceptance>()
  const left = () => resolve({ kind: 'left' })
  if (signal.aborted) left()
  signal.addEventListener('abort', left)
  const timer = streams ? setTimeout(resolve, patience, { kind: 'stream' }) : undefined
  const unwatch = runtime.onLost(runId, (error) => resolve({ kind: 'error', error }))
  let over = false

  async function checkAcceptance(): Promise<Acceptance> {
    const answering = createAnswering()
    const parallels: string[] = []
    const begin = (entry: EntryOf<'step-start'>) => {
      answering.note(entry)
      if (kindOf(entry) === 'parallel') parallels.push(entry.step)
    }
    if (from > 1) {
      for await (const earlier of runtime.store.log.read(runId, { before: from, types: ['step-start'] }))
        for (const entry of earlier) if (entry.type === 'step-start') begin(entry)
    }
    while (!over) {
      const { done, value } = await reader.peek()
      if (done) break
      for (const entry of value) {
        if (entry.seq < from) continue
        if (entry.type === 'step-start') begin(entry)
        switch (entry.type) {
          case 'answer-end':
          case 'suspend':
            return { kind: 'stream' }
          case 'run-end':
            if (entry.error !== undefined) return { kind: 'error', error: entry.error }
            return { kind: 'value', output: entry.output }
          case 'step-start': {
            const { step, head } = entry
            // In a parallel step more answers follow, so the head of one does not apply to all.
            const isAlone = !parallels.some((path) => isUnder(step, path))
            if (head !== undefined && isAlone && answering.has(step)) return { kind: 'response', head }
            break
          }
          case 'run-start':
          case 'retry':
          case 'prompt':
          case 'usage':
          case 'error':
          case 'step-finish':
            break
          default:
            if (showsSteps || answering.has(entry.step)) return { kind: 'stream' }
        }
      }
    }
    // The log ended before the run did: the server is shutting down.
    return { kind: 'error', error: toErrorValue(closingError()) }
  }

  checkAcceptance().then(resolve, reject)
  try {
    return await promise
  } finally {
    over = true
    clearTimeout(timer)
    unwatch()
    signal.removeEventListener('abort', left)
  }
}

/** Responds with the `Response` that a step returned: its head from the log, its body streamed. */
interface StepResponseOptions {
  runId: string
  head: ResponseHead
  policy: DisconnectPolicy
  /** First `seq` of this turn. */
  from?: number
  /** Fires when the client disconnects. */
  signal: AbortSignal
}

/**
 * Whether a step's `Response` is sent as it is: always for plain text, which has no frames. Other protocols carry the text of a
 * 2xx in their frames, and pass on any other status, which their clients read.
 */
function isAnsweredAsItIs({ status }: ResponseHead, wire: WireTraits): boolean {
  return wire.isRaw === true || status < 200 || status > 299
}

/** Statuses that have no body. */
const bodyless: ReadonlySet<number> = new Set([204, 205, 304])

/** Rejects with the run's error if the run fails before a binary body is complete. */
async function stepResponse(context: DeliveryContext, options: StepResponseOptions): Promise<Response> {
  const { runId, head, policy, from, signal } = options
  const headers = new Headers(head.headers)
  for (const cookie of takeCookies(runId)) headers.append('set-cookie', cookie)
  headers.set('x-millrace-run-id', runIdHeader(runId))
  const { status, statusText = '' } = head
  const init = { status, statusText, headers }
  if (bodyless.has(status)) return new Response(null, init)
  if (head.binary) return new Response(await readFile(context, runId, signal), init)
  if (!headers.has('content-type')) headers.set('content-type', textWire.contentType)
  const answer = await openDelivery(context, { runId, wire: textWire, policy, ...(from !== undefined && { from }) })
  return new Response(deliveryResponse(textWire, runId, answer).body, init)
}

/** Reads a binary body, which is one `file` part in the log. */
async function readFile(
  { runtime }: DeliveryContext,
  runId: string,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const leave = new AbortController()
  for await (const batch of runtime.store.log.read(runId, { signal: anySignal([leave.signal, signal]) })) {
    for (const entry of batch) {
      if (entry.type === 'file' && typeof entry.data === 'string') return fromBase64(entry.data)
      if (entry.type === 'run-end' && entry.error !== undefined) throw fromErrorValue(entry.error)
      if (entry.type === 'answer-end' || entry.type === 'run-end') return new Uint8Array()
    }
  }
  return new Uint8Array()
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
}

/** Answers a request with the `Response` that a step returned: its head from the log, its body streamed. */
import { anySignal } from '../async/any-signal.ts'
import { runIdHeader } from './run-id-header.ts'
import { fromErrorValue } from '../part/error.ts'
import type { ResponseHead } from '../part/response-head.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import { takeCookies } from '../engine/live-cookies.ts'
import { textWire } from '../wire/text/text.ts'
import type { WireTraits } from '../wire/wire.ts'
import type { AnswerContext } from './answer-context.ts'
import { answerResponse } from './answer-response.ts'
import { openAnswer } from './open-answer.ts'

export interface StepResponseOptions {
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
export function isAnsweredAsItIs({ status }: ResponseHead, wire: WireTraits): boolean {
  return wire.isRaw === true || status < 200 || status > 299
}

/** Statuses that have no body. */
const bodyless: ReadonlySet<number> = new Set([204, 205, 304])

/** Rejects with the run's error if the run fails before a binary body is complete. */
export async function stepResponse(context: AnswerContext, options: StepResponseOptions): Promise<Response> {
  const { runId, head, policy, from, signal } = options
  const headers = new Headers(head.headers)
  for (const cookie of takeCookies(runId)) headers.append('set-cookie', cookie)
  headers.set('x-millrace-run-id', runIdHeader(runId))
  const { status, statusText = '' } = head
  const init = { status, statusText, headers }
  if (bodyless.has(status)) return new Response(null, init)
  if (head.binary) return new Response(await readFile(context, runId, signal), init)
  if (!headers.has('content-type')) headers.set('content-type', textWire.contentType)
  const answer = await openAnswer(context, { runId, wire: textWire, policy, ...(from !== undefined && { from }) })
  return new Response(answerResponse(textWire, runId, answer).body, init)
}

/** Reads a binary body, which is one `file` part in the log. */
async function readFile(
  { runtime }: AnswerContext,
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

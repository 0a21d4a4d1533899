/**
 * One run to one client, over any transport: presence, the cursor and what it replays, the encoder, and the decision what kind of
 * response it is. Routes read the request, continue or start a run, and answer with this.
 */
import type { ErrorValue } from '../part/error.ts'
import type { ResponseHead } from '../part/response-head.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import type { Piece } from '../wire/wire.ts'
import { awaitAcceptance } from './acceptance.ts'
import type { AnswerContext } from './answer-context.ts'
import { openAnswer, type OpenAnswer, type OpenOptions } from './open-answer.ts'
import { isAnsweredAsItIs, stepResponse } from './step-response.ts'

export interface AnswerOptions<Options extends object, Out extends Piece> extends OpenOptions<Options, Out> {
  policy: DisconnectPolicy
  /** Fires when the client disconnects. */
  signal: AbortSignal
  /** The agent may stream. If not, nothing is sent before the answer is known. */
  streams: boolean
  /** The client also sees other steps, so the first model that accepts the request begins the answer. */
  showsSteps?: boolean
  /** A value of an agent without a stream is sent in the wire's frames. Default: the caller gets the value. */
  framesValue?: boolean
}

/** What to send. `left`: the client disconnected first. */
export type AnsweredRun<Out extends Piece> =
  | { kind: 'stream'; answer: OpenAnswer<Out> }
  | { kind: 'value'; output: unknown }
  | { kind: 'error'; error: ErrorValue }
  /** What a step returned, as it is. */
  | { kind: 'response'; response: Response }
  | { kind: 'left' }

export async function answerRun<Options extends object, Out extends Piece>(
  context: AnswerContext,
  request: AnswerOptions<Options, Out>,
): Promise<AnsweredRun<Out>> {
  const { runId, wire, streams, from = 0, signal, showsSteps = false, framesValue = false } = request
  const answer = await openAnswer(context, request)
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
  context: AnswerContext,
  { runId, policy, signal, from }: AnswerOptions<Options, Out>,
  head: ResponseHead,
): Promise<Response> {
  return stepResponse(context, { runId, head, policy, signal, ...(from !== undefined && { from }) })
}

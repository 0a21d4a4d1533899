/** Answers a completion: in frames as they come, or as one JSON. */
import { answerResponse, withRunId } from '../../answer/answer-response.ts'
import { answerRun, type AnsweredRun } from '../../answer/answer-run.ts'
import { collectAnswer } from '../../answer/open-answer.ts'
import { fromErrorValue, type ErrorValue } from '../../part/error.ts'
import { openaiJsonWire } from '../../wire/openai/openai-completion.ts'
import { openaiWire } from '../../wire/openai/openai.ts'
import type { HandlerContext } from '../handler.ts'
import { hasActed } from './openai-acted.ts'
import { continueCompletion } from './openai-continue.ts'
import { readCompletion, type Kind } from './openai-completion-request.ts'
import { openAiRunError, withoutRetry } from './openai-error.ts'
import type { Base } from './openai-extensions.ts'

export async function postCompletion(
  context: HandlerContext,
  request: Request,
  kind: Kind,
  base: Base,
): Promise<Response> {
  const { signal } = request
  const { turn, stream, policy, repeat, ...read } = await readCompletion(context, request, kind, base)
  const again = await repeat.failed()
  const { run, how, from } = again ?? (await continueCompletion(context.runtime, turn))
  if (again === undefined) repeat.started(run)
  const options = { ...read.options, from }
  const { id: runId } = run
  const waitUntil = context.waitUntil(request)
  if (waitUntil !== undefined) waitUntil(run.result)
  const common = { runId, how, from, options, policy, signal, framesValue: true }
  if (stream) {
    const showsSteps = options.extensions.length > 0
    const answered = await answerRun(context, { ...common, wire: openaiWire, streams: true, showsSteps })
    return answered.kind === 'stream'
      ? answerResponse(openaiWire, runId, answered.answer)
      : refuse(context, answered, runId)
  }
  const answered = await answerRun(context, { ...common, wire: openaiJsonWire, streams: false })
  if (answered.kind !== 'stream') return refuse(context, answered, runId)
  const [result] = (await collectAnswer(answered.answer, signal))?.flat() ?? []
  if (result === undefined) return refuse(context, { kind: 'left' }, runId)
  return 'error' in result ? failed(context, result.error, runId) : withRunId(Response.json(result.body), runId)
}

/** What is no answer in the protocol's own form. */
async function refuse(
  context: HandlerContext,
  answered: Exclude<AnsweredRun<never>, { kind: 'stream' }>,
  runId: string,
): Promise<Response> {
  if (answered.kind === 'error') return failed(context, answered.error, runId)
  if (answered.kind === 'response') return withoutRetry(answered.response)
  return new Response(null, { status: 499 })
}

async function failed({ runtime }: HandlerContext, error: ErrorValue, runId: string): Promise<Response> {
  return withRunId(openAiRunError(fromErrorValue(error), await hasActed(runtime.store.log, runId)), runId)
}

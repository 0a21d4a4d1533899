/** Answers a completion: in frames as they come, or as one JSON. */
import { answerResponse, withRunId } from '../../answer/answer-response.ts'
import { answerRun, type AnsweredRun } from '../../answer/answer-run.ts'
import { collectAnswer } from '../../answer/open-answer.ts'
import { fromErrorValue, type ErrorValue } from '../../part/error.ts'
import type { Entry } from '../../part/entry.ts'
import type { Log } from '../../part/log.ts'
import { kindOf } from '../../part/step-kind.ts'
import { openaiJsonWire } from '../../wire/openai/openai-completion.ts'
import { openaiWire } from '../../wire/openai/openai.ts'
import type { HandlerContext } from '../handler.ts'
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
  const { turn, stream, policy, ...read } = await readCompletion(context, request, kind, base)
  const { run, how, from } = await continueCompletion(context.runtime, turn)
  const options = { ...read.options, from }
  const { id: runId } = run
  if (context.waitUntil !== undefined) context.waitUntil(run.result)
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

/** Whether the run has done what a second one would do again. Its log may be gone with its store. */
async function hasActed(log: Log, runId: string): Promise<boolean> {
  try {
    for await (const batch of log.read(runId, { types: ['step-start', 'session-info'] })) {
      if (batch.some(isAct)) return true
    }
  } catch {
    // The failure is told all the same.
  }
  return false
}

/** A CLI agent that has begun a session may have done anything. */
function isAct(entry: Entry): boolean {
  if (entry.type !== 'step-start') return entry.type === 'session-info'
  return kindOf(entry) === 'tool-call' || entry.stepType === 'mcp-tool'
}

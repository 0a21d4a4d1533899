/** `POST /v1/chat/completions`, `POST /v1/completions`, `GET /v1/models`, `GET /v1/models/:id`, also under `/api/v1`. */
import { keepRunning } from '../http/wait-until.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import type { Routes } from '../http/routes.ts'
import { type Kind, readCompletion } from './completion-request.ts'
import { isMessagesRequest, messagesError } from '../messages/error.ts'
import { openAiError, openAiRunError, withoutRetry } from './error.ts'
import { bases, type Base } from './extensions.ts'
import { listModels, showModel } from './models.ts'
import { deliveryResponse, withRunId } from '../../delivery/delivery-response.ts'
import { deliverRun, type AnsweredRun } from '../../delivery/deliver-run.ts'
import { collectAnswer } from '../../delivery/open-delivery.ts'
import { fromErrorValue, type ErrorValue } from '../../part/error.ts'
import { openaiJsonWire } from '../../wire/openai/openai-completion.ts'
import { openaiWire } from '../../wire/openai/openai.ts'
import { hasActed } from './acted.ts'
import { continueOrStart } from '../../runtime/continue.ts'
import { continueWaiting } from '../turn/continue-waiting.ts'

export function mountOpenAi(routes: Routes): void {
  for (const base of bases) {
    const { path } = base
    const post = (kind: Kind) => (context: RequestContext, request: { raw: Request }) =>
      answered(context, request.raw, () => postCompletion(context, request.raw, kind, base))
    routes.post(`${path}/chat/completions`, 'runs.start', post('chat.completion'))
    routes.post(`${path}/completions`, 'runs.start', post('text_completion'))
    routes.get(`${path}/models`, 'agents.list', ({ runtime }, { raw }) => listModels(runtime.agents, raw))
    routes.get(`${path}/models/:id`, 'agents.list', (context, request) =>
      answered(context, request.raw, async () => showModel(context.runtime.agents, request.param('id'), request.raw)),
    )
  }
}

async function answered(
  { onError }: HandlerContext,
  request: Request,
  respond: () => Promise<Response>,
): Promise<Response> {
  try {
    return await respond()
  } catch (error) {
    const { pathname } = new URL(request.url)
    const say = isMessagesRequest(pathname, request.headers) ? messagesError : openAiError
    const response = say(error as Error)
    if (response.status >= 500) onError(error)
    return response
  }
}

/** Answers a completion: in frames as they come, or as one JSON. */
async function postCompletion(context: HandlerContext, request: Request, kind: Kind, base: Base): Promise<Response> {
  const { signal } = request
  const { turn, stream, policy, repeat, ...read } = await readCompletion(context, request, kind, base)
  const again = await repeat.failed()
  const { run, how, from } =
    again ?? (await continueWaiting(context.runtime, turn)) ?? (await continueOrStart(context.runtime, turn))
  if (again === undefined) repeat.started(run)
  const options = { ...read.options, from }
  const { id: runId } = run
  keepRunning(context.waitUntil(request), run)
  const common = { runId, how, from, options, policy, signal, framesValue: true }
  if (stream) {
    const showsSteps = options.extensions.length > 0
    const answered = await deliverRun(context, { ...common, wire: openaiWire, streams: true, showsSteps })
    return answered.kind === 'stream'
      ? deliveryResponse(openaiWire, runId, answered.answer)
      : refuse(context, answered, runId)
  }
  const answered = await deliverRun(context, { ...common, wire: openaiJsonWire, streams: false })
  if (answered.kind !== 'stream') return refuse(context, answered, runId)
  const [result] = (await collectAnswer(answered.answer, signal))?.flat() ?? []
  if (result === undefined) return refuse(context, { kind: 'left' }, runId)
  return 'error' in result ? failed(context, result.error, runId) : withRunId(Response.json(result.body), runId)
}

/** Responses outside of the protocol's own form. */
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

/** `POST /api/chat`, `POST /api/beddel/chat`, `GET /api/chat/:id/stream`. */
import { keepRunning } from '../http/wait-until.ts'
import { deliveryResponse, withRunId } from '../../delivery/delivery-response.ts'
import { deliverRun } from '../../delivery/deliver-run.ts'
import { errorResponse } from '../../delivery/http-error.ts'
import { mayStream } from '../../delivery/may-stream.ts'
import { openDelivery } from '../../delivery/open-delivery.ts'
import { readReplayState } from '../../delivery/run-reader.ts'
import { fromErrorValue } from '../../part/error.ts'
import { continueOrStart } from '../../runtime/continue.ts'
import { pipelineOfRun } from '../../runtime/own-text.ts'
import { textWire } from '../../wire/text/text.ts'
import { uiWire } from '../../wire/ui/ui.ts'
import type { Wire } from '../../wire/wire.ts'
import type { RequestContext } from '../handler-context.ts'
import { chatPolicy, readChat, readWire, checkShown } from './chat-request.ts'
import { threadNamed } from './existing-thread.ts'

export async function postChat(context: RequestContext, request: Request, defaultWire: Wire): Promise<Response> {
  const { runtime } = context
  const { wire, options } = readWire(context, request, defaultWire)
  const { turn, pipeline } = await readChat(context, request, wire)
  const { run, how, from } = await continueOrStart(runtime, { ...turn, wireOptions: options })
  const { id: runId } = run
  keepRunning(context.waitUntil(request), run)
  const streams = pipeline === undefined || mayStream(pipeline, (id) => runtime.agents.get(id)?.pipeline)
  const policy = chatPolicy(runtime, pipeline)
  const { signal } = request
  const answered = await deliverRun(context, { runId, wire, options, how, from, policy, streams, signal })
  switch (answered.kind) {
    case 'stream':
      return deliveryResponse(wire, runId, answered.answer)
    case 'value':
      return withRunId(Response.json(answered.output ?? null), runId)
    case 'error':
      return withRunId(errorResponse(fromErrorValue(answered.error)), runId)
    case 'response':
      return answered.response
    case 'left':
      return new Response(null, { status: 499 })
  }
}

/** The active answer of a chat from its start, or 204. `useChat({resume: true})` requests it after a reload. */
export async function getChatStream(context: RequestContext, request: Request, chat: string): Promise<Response> {
  checkShown(context)
  const { runtime } = context
  const threadId = await threadNamed(context, chat)
  const row = (await runtime.store.runs.list({ threadId, limit: 1 }))[0]
  const replayState = row?.status === 'running' ? await readReplayState(runtime.store.log, row.id) : undefined
  if (row === undefined || replayState === undefined || replayState.isAnswered) {
    return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } })
  }
  // A run that was not started by a chat (but by /api/runs or a program) continues when a reader disconnects.
  const isChat = row.protocol === uiWire.name || row.protocol === textWire.name
  const policy = isChat ? chatPolicy(runtime, await pipelineOfRun(runtime, row)) : 'detach'
  const { wire, options } = readWire(context, request, uiWire)
  // The client has the answer up to the message that it sent into it.
  const { turnAt, resumedAt } = replayState
  const place = turnAt > resumedAt ? ({ how: 'steered', from: turnAt } as const) : {}
  const answer = await openDelivery(context, { runId: row.id, wire, options, replayState, policy, ...place })
  return deliveryResponse(wire, row.id, answer)
}

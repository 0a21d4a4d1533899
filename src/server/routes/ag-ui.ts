/** `POST /ag-ui/:agentId`, `GET /ag-ui/:agentId/connect`, `GET /ag-ui/:agentId/capabilities`. */
import { keepRunning } from '../http/wait-until.ts'
import { deliveryResponse, withRunId } from '../../delivery/delivery-response.ts'
import { deliverRun } from '../../delivery/deliver-run.ts'
import { errorResponse } from '../../delivery/http-error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { fromErrorValue } from '../../part/error.ts'
import { continueOrStart } from '../../runtime/continue.ts'
import { unknownAgent } from '../../runtime/runtime-errors.ts'
import type { Agent, Runtime } from '../../runtime/runtime.ts'
import { agentOfRequest, readRunInput, toAgUiTurn } from '../ag-ui/ag-ui-turn.ts'
import { agentCapabilities } from '../ag-ui/capabilities.ts'
import { connectThread, joinRun, transportOf } from '../ag-ui/connect.ts'
import type { RequestContext } from '../handler-context.ts'
import { readJson } from '../http/body.ts'
import type { Routes } from '../http/routes.ts'
import { chatPolicy, checkShown } from './chat-request.ts'

export function mountAgUi(routes: Routes): void {
  routes.post('/ag-ui/:agentId', 'runs.start', (context, request) =>
    postRun(context, request.raw, findAgent(context.runtime, request.param('agentId'))),
  )
  routes.get('/ag-ui/:agentId/connect', 'runs.read', (context, request) => {
    checkShown(context)
    findAgent(context.runtime, request.param('agentId'))
    return connectThread(context, request.raw)
  })
  routes.get('/ag-ui/:agentId/capabilities', 'agents.list', async (context, request) =>
    Response.json(await agentCapabilities(context, findAgent(context.runtime, request.param('agentId')))),
  )
}

function findAgent({ agents }: Runtime, id: string): Agent {
  const agent = agents.get(id)
  if (agent === undefined) throw unknownAgent(id, agents)
  return agent
}

async function postRun(context: RequestContext, request: Request, file: Agent): Promise<Response> {
  const { runtime, maxBodyBytes } = context
  const asked = readRunInput(await readJson(request, maxBodyBytes))
  const { wire } = await transportOf(request)
  const traceparent = request.headers.get('traceparent')
  const { agent, own } = await agentOfRequest(context, request, file, asked)
  const { turn, messages, warnings } = await toAgUiTurn(runtime, agent, asked, { traceparent, history: 'client', own })
  const { run, how, from } = await continueOrStart(runtime, { ...turn, wireOptions: { old: asked.old, warnings } })
  const { id: runId } = run
  keepRunning(context.waitUntil(request), run)
  // A repeated request has not read the run's events before its continuation.
  const joined = how === 'joined' ? await joinRun(runtime, runId) : undefined
  const answered = await deliverRun(context, {
    runId,
    wire,
    how,
    from,
    ...joined,
    options: { old: asked.old, warnings, ...(how === 'started' && omitUndefined({ messages })), ...joined?.options },
    policy: chatPolicy(runtime, agent.pipeline),
    signal: request.signal,
    // The first event is sent at once, even for an agent with only a value.
    streams: true,
    framesValue: true,
  })
  switch (answered.kind) {
    case 'stream':
      return deliveryResponse(wire, runId, answered.answer)
    case 'error':
      return withRunId(errorResponse(fromErrorValue(answered.error)), runId)
    case 'response':
      return answered.response
    case 'value':
    case 'left':
      return new Response(null, { status: 499 })
  }
}

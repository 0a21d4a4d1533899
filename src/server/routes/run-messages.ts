/** `POST /api/runs/:id/messages`, `DELETE /api/runs/:id/messages/:messageId`: messages into a running turn. */
import type { RequestContext } from '../handler-context.ts'
import { readJson } from '../http/body.ts'
import type { Routes } from '../http/routes.ts'
import { checkWaits } from '../http/wait-until.ts'
import { messageFields, readMessage } from './read-message.ts'
import { protocolOf } from './runs.ts'

export function mountRunMessages(routes: Routes): void {
  routes.post('/api/runs/:id/messages', 'runs.answer', (context, request) =>
    postMessage(context, request.raw, request.param('id')),
  )
  routes.delete('/api/runs/:id/messages/:messageId', 'runs.answer', (context, request) =>
    deleteMessage(context, request.param('id'), request.param('messageId')),
  )
}

/** Body: `{content, id?, mode?}`. 202 when it is stored: `{id, mode, duplicate}`. */
async function postMessage(context: RequestContext, request: Request, run: string): Promise<Response> {
  checkWaits(context.waitUntil(request), 'A message to a run')
  const body = await readJson(request, context.maxBodyBytes)
  const told = await context.runtime.tell(run, {
    ...readMessage(body, messageFields),
    protocol: protocolOf(context, request),
  })
  return Response.json(told, { status: 202 })
}

async function deleteMessage({ runtime }: RequestContext, run: string, id: string): Promise<Response> {
  await runtime.takeBack(run, id)
  return Response.json({ id, withdrawn: true })
}
